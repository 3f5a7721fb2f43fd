// SPDX-License-Identifier: Apache-2.0
#include "config/table/codec.h"

#include <algorithm>

#include "config/table/parse_value.h"
#include "config/table/table.h"

namespace stoker::config {
namespace {

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string check_text(const std::string& text, bool may_be_empty) {
  if (text.empty() && !may_be_empty) return "no value given";
  if (!is_utf8(text)) return shown(text) + " is not valid UTF-8, so that no configuration file could hold it";
  const bool has_control =
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  return has_control ? shown(text) + " holds a control character" : "";
}

}  // namespace

Codec<int64_t> integer_codec(int64_t min, int64_t max) {
  Codec<int64_t> codec;
  codec.parse = [min, max](const std::string& text, int64_t& value) { return read_integer(text, min, max, value); };
  codec.render = [](int64_t value) { return std::to_string(value); };
  codec.placeholder = "N";
  codec.range = range_text(min, max);
  codec.is_number = true;
  return codec;
}

Codec<uint64_t> unsigned_codec() {
  Codec<uint64_t> codec;
  codec.parse = [](const std::string& text, uint64_t& value) { return read_unsigned(text, value); };
  codec.render = [](uint64_t value) { return std::to_string(value); };
  codec.placeholder = "N";
  codec.range = "0 to 18446744073709551615";
  codec.is_number = true;
  return codec;
}

Codec<double> number_codec(const Bounds& bounds) {
  Codec<double> codec;
  codec.parse = [bounds](const std::string& text, double& value) { return read_number(text, bounds, value); };
  codec.render = [](double value) { return number_text(value); };
  codec.placeholder = "X";
  codec.range = range_text(bounds);
  codec.is_number = true;
  return codec;
}

Codec<bool> switch_codec() {
  Codec<bool> codec;
  codec.parse = [](const std::string& text, bool& value) { return read_switch(text, value); };
  codec.render = [](bool value) { return std::string(value ? "true" : "false"); };
  return codec;
}

Codec<std::string> text_codec(const std::string& kind, bool may_be_empty) {
  Codec<std::string> codec;
  codec.parse = [may_be_empty](const std::string& text, std::string& value) {
    std::string problem = check_text(text, may_be_empty);
    if (problem.empty()) value = text;
    return problem;
  };
  codec.render = [](const std::string& value) { return value; };
  codec.placeholder = kind;
  return codec;
}

Codec<std::vector<double>> list_codec(const Bounds& bounds, const std::string& empty_word) {
  Codec<std::vector<double>> codec;
  codec.parse = [bounds, empty_word](const std::string& text, std::vector<double>& value) {
    if (text == empty_word) {
      value.clear();
      return std::string();
    }
    return read_list(text, bounds, value);
  };
  codec.render = [empty_word](const std::vector<double>& value) {
    return value.empty() ? empty_word : list_value_text(value);
  };
  codec.placeholder = "X,X,...";
  codec.range = "each " + range_text(bounds);
  return codec;
}

Codec<Interval> interval_or_share_codec() {
  Codec<Interval> codec = interval_codec();
  codec.parse = [](const std::string& text, Interval& value) { return read_interval_or_share(text, value); };
  return codec;
}

Codec<Interval> epochs_or_updates_codec() {
  Codec<Interval> codec = interval_or_share_codec();
  codec.range = "2e (epochs), 2000u (updates) or never";
  return codec;
}

Codec<Interval> interval_codec() {
  Codec<Interval> codec;
  codec.parse = [](const std::string& text, Interval& value) { return read_interval(text, value); };
  codec.render = [](const Interval& value) { return interval_text(value); };
  codec.placeholder = "INTERVAL";
  codec.range = "1e (epochs), 2000u (updates), 30s, 10m, 2h or never";
  return codec;
}

Codec<double> duration_codec() {
  Codec<double> codec;
  codec.parse = [](const std::string& text, double& value) { return read_duration(text, value); };
  codec.render = [](double value) { return seconds_text(value); };
  codec.placeholder = "DURATION";
  codec.range = "600s, 90m, 10h, 2d, or 0 for no limit";
  return codec;
}

Codec<int64_t> size_codec() {
  Codec<int64_t> codec;
  codec.parse = [](const std::string& text, int64_t& value) { return read_size(text, value); };
  codec.render = [](int64_t value) { return size_text(value); };
  codec.placeholder = "SIZE";
  codec.range = "500MB, 16GB, 16GiB, 1.5TB, or 0";
  return codec;
}

Codec<ImageSize> image_size_codec(int64_t min, int64_t max) {
  Codec<ImageSize> codec;
  codec.parse = [min, max](const std::string& text, ImageSize& value) {
    const std::vector<std::string> sides = split_words(text, ',');
    if (sides.size() > 2) return shown(text) + " is not accepted; write N for a square, or HEIGHT,WIDTH";
    ImageSize size;
    std::string problem = read_integer(sides.front(), min, max, size.height);
    if (problem.empty()) problem = read_integer(sides.back(), min, max, size.width);
    if (problem.empty()) value = size;
    return problem;
  };
  codec.render = [](const ImageSize& value) { return image_size_text(value); };
  codec.placeholder = "N|HEIGHT,WIDTH";
  codec.range = range_text(min, max);
  codec.is_number = true;
  return codec;
}

Codec<std::string> device_codec() {
  Codec<std::string> codec;
  codec.parse = [](const std::string& written, std::string& value) {
    const std::string text = core::lower_case(written);
    int64_t index = 0;
    const bool has_index = text.rfind("cuda:", 0) == 0;
    const bool known =
        text == "cpu" || text == "cuda" || (has_index && read_integer(text.substr(5), 0, 63, index).empty());
    if (!known) return shown(written) + " is not a device; accepted: auto, cpu, cuda or cuda:N with N from 0 to 63";
    value = text;
    return std::string();
  };
  codec.render = [](const std::string& value) { return value; };
  codec.placeholder = "DEVICE";
  codec.range = "cpu, cuda or cuda:N";
  return codec;
}

Codec<Devices> devices_codec() {
  constexpr int64_t kMaxProcesses = 4096, kLastGpu = 63;
  Codec<Devices> codec;
  codec.parse = [](const std::string& text, Devices& value) {
    Devices read;
    if (text.find(',') == std::string::npos) {
      const std::string problem = read_integer(text, 1, kMaxProcesses, read.count);
      if (problem.empty()) value = read;
      return problem;
    }
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      int64_t gpu = 0;
      if (!read_integer(text.substr(begin, end - begin), 0, kLastGpu, gpu).empty()) {
        return shown(text) + " is not a list of GPUs; accepted: numbers from 0 to 63, as in 0,2";
      }
      if (std::find(read.gpus.begin(), read.gpus.end(), gpu) != read.gpus.end()) {
        return shown(text) + " names GPU " + std::to_string(gpu) + " twice; each process has one of its own";
      }
      read.gpus.push_back(gpu);
      begin = end + 1;
    }
    read.count = static_cast<int64_t>(read.gpus.size());
    value = read;
    return std::string();
  };
  codec.render = [](const Devices& value) {
    if (value.gpus.empty()) return std::to_string(value.count);
    std::string text;
    for (const int64_t gpu : value.gpus) text += (text.empty() ? "" : ",") + std::to_string(gpu);
    return value.gpus.size() == 1 ? text + "," : text;
  };
  codec.placeholder = "N|LIST";
  codec.range = range_text(1, kMaxProcesses) + ", or numbers of GPUs: 0,2";
  codec.is_number = true;
  return codec;
}

std::string find_choice(const std::string& word, const std::vector<std::string>& choices, size_t& index) {
  const auto found = std::find_if(choices.begin(), choices.end(),
                                  [&](const std::string& choice) { return kebab(choice) == kebab(word); });
  if (found != choices.end()) {
    index = static_cast<size_t>(found - choices.begin());
    return "";
  }
  if (word.empty()) return "no value given; accepted: " + joined_words(choices);
  const std::string nearest = near_name(word, choices);
  return shown(word) + " is not accepted; write " + (choices.size() > 1 ? "one of " : "") + joined_words(choices) +
         (nearest.empty() ? "" : " (did you mean " + nearest + "?)");
}

}  // namespace stoker::config
