// SPDX-License-Identifier: Apache-2.0
#include "config/table/parse_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "core/format.h"

namespace stoker::config {
namespace {

struct TimeUnit {
  char letter;
  double seconds;
};
constexpr TimeUnit kTimeUnits[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};

double seconds_of_unit(char letter) {
  for (const TimeUnit& unit : kTimeUnits) {
    if (unit.letter == letter) return unit.seconds;
  }
  return 0;
}

constexpr Bounds kTimeAmount{0, 1e9, true, false};

struct SizeUnit {
  std::string_view name;
  int64_t bytes;
};
constexpr int64_t kKilo = 1000, kKibi = 1024;
constexpr SizeUnit kSizeUnits[] = {{"TiB", kKibi* kKibi* kKibi* kKibi},
                                   {"TB", kKilo* kKilo* kKilo* kKilo},
                                   {"GiB", kKibi* kKibi* kKibi},
                                   {"GB", kKilo* kKilo* kKilo},
                                   {"MiB", kKibi* kKibi},
                                   {"MB", kKilo* kKilo},
                                   {"KiB", kKibi},
                                   {"kB", kKilo},
                                   {"KB", kKilo},
                                   {"B", 1}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "010" or "-010" or "01.5".
bool has_leading_zero(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

std::string leading_zero_problem(std::string_view text) {
  const bool negative = text[0] == '-';
  size_t first = text.find_first_not_of("-0");
  if (first == std::string_view::npos) first = text.size() - 1;
  std::string plain(text.substr(first));
  if (!is_digit(plain[0])) plain = "0" + plain;
  return shown(text) + " begins with 0, which some readers take for octal; write " + (negative ? "-" : "") + plain;
}

std::string out_of_range(std::string_view text, const std::string& range) {
  return std::string(text) + " is out of range; accepted: " + range;
}

template <typename T>
std::string read_whole(std::string_view text, T min, T max, const std::string& range, T& value) {
  if (text.empty()) return "no value given; accepted: " + range;
  if (has_leading_zero(text)) return leading_zero_problem(text);
  T parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  const bool whole_text = end == text.data() + text.size();
  const bool below_zero = min == 0 && text[0] == '-' && text.find_first_not_of("0123456789", 1) == text.npos;
  if (below_zero && text.size() > 1 && text != "-0") return out_of_range(text, range);
  if (error == std::errc::invalid_argument || !whole_text) {
    return shown(text) + " is not a whole number in decimal digits; accepted: " + range;
  }
  if (error != std::errc{} || parsed < min || parsed > max) return out_of_range(text, range);
  value = parsed;
  return "";
}

}  // namespace

std::string read_integer(std::string_view text, int64_t min, int64_t max, int64_t& value) {
  return read_whole<int64_t>(text, min, max, range_text(min, max), value);
}

std::string read_unsigned(std::string_view text, uint64_t& value) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  return read_whole<uint64_t>(text, 0, kMax, "0 to " + std::to_string(kMax), value);
}

std::string read_number(std::string_view text, const Bounds& bounds, double& value) {
  const std::string range = range_text(bounds);
  if (text.empty()) return "no value given; accepted: " + range;
  if (has_leading_zero(text)) return leading_zero_problem(text);
  double parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    return shown(text) + " is not a decimal number; accepted: " + range;
  }
  if (error != std::errc{}) return out_of_range(text, range + " in double precision");
  if (!std::isfinite(parsed)) return shown(text) + " is not a finite number; accepted: " + range;
  const bool too_low = bounds.low_open ? parsed <= bounds.low : parsed < bounds.low;
  const bool too_high = bounds.high_open ? parsed >= bounds.high : parsed > bounds.high;
  if (too_low || too_high) return out_of_range(text, range);
  value = parsed;
  return "";
}

std::string read_switch(std::string_view text, bool& value) {
  if (text != "true" && text != "false") {
    return (text.empty() ? "no value given" : shown(text) + " is not a switch value") + "; write true or false";
  }
  value = text == "true";
  return "";
}

std::string read_list(std::string_view text, const Bounds& bounds, std::vector<double>& value) {
  std::vector<double> parsed;
  for (const std::string& item : split_words(text, ',')) {
    double number = 0;
    const std::string problem = read_number(item, bounds, number);
    if (!problem.empty()) return core::format("item {}: {}", parsed.size() + 1, problem);
    parsed.push_back(number);
  }
  value = std::move(parsed);
  return "";
}

std::string read_interval(std::string_view text, Interval& value) {
  const std::string accepted = "; accepted: 1e (epochs), 2000u (updates), 30s, 10m, 2h or never";
  if (text == "never") {
    value = Interval{};
    return "";
  }
  if (text.empty()) return "no value given" + accepted;
  const char letter = text.back();
  const std::string_view amount = text.substr(0, text.size() - 1);
  if (is_digit(letter)) return shown(text) + " has no unit" + accepted;
  if (letter == 'e' || letter == 'u') {
    int64_t count = 0;
    if (!read_integer(amount, 1, 1'000'000'000'000, count).empty()) {
      return shown(text) + " is not an interval: epochs and updates are whole numbers from 1" + accepted;
    }
    const auto whole = static_cast<double>(count);
    value = letter == 'e' ? Interval::epochs(whole) : Interval::updates(whole);
    return "";
  }
  const double unit = seconds_of_unit(letter);
  if (unit == 0) return shown(text) + " is not an interval" + accepted;
  double number = 0;
  if (!read_number(amount, kTimeAmount, number).empty()) return shown(text) + " is not an interval" + accepted;
  value = Interval::seconds(number * unit);
  return "";
}

std::string read_interval_or_share(std::string_view text, Interval& value) {
  double share = 0;
  const bool may_be_share = !text.empty() && text.back() == 'e' && text.find('.') != std::string_view::npos;
  if (may_be_share && read_number(text.substr(0, text.size() - 1), {0, 1, true, true}, share).empty()) {
    value = Interval::epochs(share);
    return "";
  }
  return read_interval(text, value);
}

std::string read_duration(std::string_view text, double& seconds) {
  const std::string accepted = "; accepted: 600s, 90m, 10h, 2d, or 0 for no limit";
  if (text == "0") {
    seconds = 0;
    return "";
  }
  if (text.empty()) return "no value given" + accepted;
  const double unit = seconds_of_unit(text.back());
  if (unit == 0) return shown(text) + (is_digit(text.back()) ? " has no unit" : " is not a duration") + accepted;
  double number = 0;
  const std::string_view amount = text.substr(0, text.size() - 1);
  if (!read_number(amount, kTimeAmount, number).empty()) return shown(text) + " is not a duration" + accepted;
  seconds = number * unit;
  return "";
}

std::string read_size(std::string_view text, int64_t& bytes) {
  const std::string accepted = "; accepted: 500MB, 16GB, 16GiB, 1.5TB, or 0";
  if (text == "0") {
    bytes = 0;
    return "";
  }
  if (text.empty()) return "no value given" + accepted;
  if (is_digit(text.back())) return shown(text) + " has no unit" + accepted;
  const size_t amount_length = text.find_last_of("0123456789.") + 1;
  for (const SizeUnit& unit : kSizeUnits) {
    if (text.substr(amount_length) != unit.name) continue;
    constexpr int64_t kMaxBytes = 1'000'000'000'000'000'000;
    constexpr auto kMax = static_cast<double>(kMaxBytes);
    int64_t count = 0;  // whole amounts stay exact, which a double does not promise
    if (read_integer(text.substr(0, amount_length), 1, kMaxBytes / unit.bytes, count).empty()) {
      bytes = count * unit.bytes;
      return "";
    }
    double amount = 0;
    if (!read_number(text.substr(0, amount_length), {0, kMax, true, false}, amount).empty()) break;
    const double whole = std::floor(amount * static_cast<double>(unit.bytes));
    if (whole > kMax) return out_of_range(text, "up to 1000000TB");
    bytes = static_cast<int64_t>(whole);
    return "";
  }
  return shown(text) + " is not a size" + accepted;
}

std::string number_text(double value) { return core::format("{}", value); }

std::string list_value_text(const std::vector<double>& value) {
  std::string text;
  for (const double number : value) text += (text.empty() ? "" : ",") + number_text(number);
  return text;
}

std::string seconds_text(double seconds) {
  if (seconds == 0) return "0";
  for (const TimeUnit& unit : kTimeUnits) {
    const double amount = seconds / unit.seconds;
    if (amount == std::floor(amount) && amount * unit.seconds == seconds) return number_text(amount) + unit.letter;
  }
  return number_text(seconds) + "s";
}

std::string size_text(int64_t bytes) {
  if (bytes == 0) return "0";
  for (const SizeUnit& unit : kSizeUnits) {
    if (bytes % unit.bytes == 0) return std::to_string(bytes / unit.bytes) + std::string(unit.name);
  }
  return std::to_string(bytes) + "B";
}

std::string interval_text(const Interval& value) {
  switch (value.unit) {
    case Interval::Unit::never: return "never";
    case Interval::Unit::epochs:
      return value.amount < 1 ? core::format("{:g}e", value.amount) : core::format("{:.0f}e", value.amount);
    case Interval::Unit::updates: return core::format("{:.0f}u", value.amount);
    case Interval::Unit::seconds: return seconds_text(value.amount);
  }
  return "never";
}

std::string range_text(const Bounds& bounds) {
  const bool has_low = std::isfinite(bounds.low);
  const bool has_high = std::isfinite(bounds.high);
  if (!has_low && !has_high) return "any number";
  const std::string low = number_text(bounds.low);
  const std::string high = number_text(bounds.high);
  if (!has_high) return bounds.low_open ? "above " + low : low + " or more";
  const std::string upper = (bounds.high_open ? "below " : "") + high;
  if (!has_low) return bounds.high_open ? upper : "at most " + high;
  return (bounds.low_open ? "above " : "") + low + " to " + upper;
}

std::string range_text(int64_t min, int64_t max) { return std::to_string(min) + " to " + std::to_string(max); }

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 60;
  const bool cut = text.size() > kLongest;
  return "\"" + core::printable(cut ? text.substr(0, kLongest) : text) + (cut ? "...\"" : "\"");
}

std::string near_name(const std::string& word, const std::vector<std::string>& names) {
  constexpr size_t kShort = 4;
  constexpr size_t kLong = 64;
  if (word.empty() || word.size() > kLong) return "";
  std::vector<std::string> candidates;
  for (const std::string& name : names) {
    if (word.size() > kShort || (name[0] == word[0] && name.size() <= word.size() + (word.size() < kShort ? 1 : 2)))
      candidates.push_back(name);
  }
  // The first of equally near names is taken: let it be the one of the most similar length.
  const auto difference = [&word](const std::string& name) {
    return name.size() > word.size() ? name.size() - word.size() : word.size() - name.size();
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&difference](const std::string& a, const std::string& b) { return difference(a) < difference(b); });
  return core::nearest_name(word, candidates);
}

std::string suggestion(const std::string& word, const std::vector<std::string>& names, const std::string& prefix) {
  const std::string name = near_name(word, names);
  return name.empty() ? "" : "; did you mean " + prefix + name + "?";
}

}  // namespace stoker::config
