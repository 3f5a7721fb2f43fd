// SPDX-License-Identifier: Apache-2.0
// How an option of one type is read, written and described. A row of the table is a field plus a codec.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/table/parse_value.h"

namespace stoker::config {

template <typename T>
struct Codec {
  std::function<std::string(const std::string& text, T& value)> parse;  ///< "" or what is wrong; sets on success
  std::function<std::string(const T& value)> render;                    ///< text that parse() reads back
  std::string placeholder;
  std::string range;
  std::vector<std::string> choices;
  bool is_number = false;
};

Codec<int64_t> integer_codec(int64_t min, int64_t max);
Codec<uint64_t> unsigned_codec();
Codec<double> number_codec(const Bounds& bounds);
Codec<bool> switch_codec();
/// Any UTF-8 text without control characters. `kind` is the placeholder: "DIR", "FILE", "NAME".
Codec<std::string> text_codec(const std::string& kind, bool may_be_empty);
/// Comma-separated numbers; `empty_word` ("auto", "none") stands for no numbers at all.
Codec<std::vector<double>> list_codec(const Bounds& bounds, const std::string& empty_word);
Codec<Interval> interval_codec();
Codec<Interval> epochs_or_updates_codec();  ///< an interval that does not depend on the clock
Codec<Interval> interval_or_share_codec();  ///< 0.1e is a tenth of an epoch
/// Seconds, written with a unit.
Codec<double> duration_codec();
/// Bytes, written with a unit.
Codec<int64_t> size_codec();
/// "224" for a square, "96,320" for height and width, each within bounds.
Codec<ImageSize> image_size_codec(int64_t min, int64_t max);
/// cpu, cuda or cuda:N.
Codec<std::string> device_codec();
/// A number of processes, or the number of the GPU of each: "4", "0,2", and "2," for GPU 2 alone.
Codec<Devices> devices_codec();

/// "" or a sentence with the accepted words and the nearest one. `word` may use `_` for `-`; `index` is set.
std::string find_choice(const std::string& word, const std::vector<std::string>& choices, size_t& index);

/// One of a few words; `others` are accepted for compatibility and not shown.
template <typename T>
Codec<T> choice_codec(std::vector<std::pair<std::string, T>> meanings,
                      std::vector<std::pair<std::string, T>> others = {}) {
  Codec<T> codec;
  for (const auto& meaning : meanings) codec.choices.push_back(meaning.first);
  codec.parse = [meanings, others, choices = codec.choices](const std::string& text, T& value) {
    for (const auto& other : others) {
      if (text == other.first) {
        value = other.second;
        return std::string();
      }
    }
    size_t index = 0;
    std::string problem = find_choice(text, choices, index);
    if (problem.empty()) value = meanings[index].second;
    return problem;
  };
  codec.render = [meanings](const T& value) {
    for (const auto& meaning : meanings) {
      if (meaning.second == value) return meaning.first;
    }
    return std::string();
  };
  return codec;
}
template <typename T>
Codec<T> choice_codec(const char* words_in_their_order) {
  return choice_codec(words_in_order<T>(words_in_their_order));
}

}  // namespace stoker::config
