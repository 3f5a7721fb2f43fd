// SPDX-License-Identifier: Apache-2.0
// Text to values and back, strictly and without locale: the only definition of the syntax of numbers,
// switches, lists, intervals and durations.
//
// Each reader returns "" and sets `value`, or returns what is wrong with the text, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.h"
#include "core/format.h"

namespace stoker::config {

/// Accepted numbers; infinite ends mean "any finite number".
struct Bounds {
  double low = 0;
  double high = 0;
  bool low_open = false;  ///< `low` itself is not accepted
  bool high_open = false;
};

/// Decimal digits with an optional `-`. No leading zero (octal in some YAML readers), hexadecimal, exponent,
/// separator or blank.
std::string read_integer(std::string_view text, int64_t min, int64_t max, int64_t& value);
std::string read_unsigned(std::string_view text, uint64_t& value);
/// A finite decimal number, with or without exponent.
std::string read_number(std::string_view text, const Bounds& bounds, double& value);
/// `true` or `false` and nothing else.
std::string read_switch(std::string_view text, bool& value);
/// Numbers separated by commas; blanks around them are allowed.
std::string read_list(std::string_view text, const Bounds& bounds, std::vector<double>& value);
/// `1e` (epochs), `2000u` (optimizer updates), `30s`, `10m`, `2h`, `1d` or `never`.
std::string read_interval(std::string_view text, Interval& value);
/// An interval as above, or a share of an epoch: 0.1e.
std::string read_interval_or_share(std::string_view text, Interval& value);
/// `600s`, `90m`, `10h`, `2d`, or `0` for no limit.
std::string read_duration(std::string_view text, double& seconds);
/// Bytes: `500MB`, `16GB` (powers of 1000), `16GiB` (powers of 1024), or `0`.
std::string read_size(std::string_view text, int64_t& bytes);

/// Shortest text that reads back as the same value.
std::string number_text(double value);
std::string list_value_text(const std::vector<double>& value);
std::string interval_text(const Interval& value);
/// In the largest unit that divides it: "90m", "0" for 0.
std::string seconds_text(double seconds);
/// In the largest unit that divides it: "16GB", "0" for 0.
std::string size_text(int64_t bytes);

/// "1 to 16", "above 0", "0 to below 1", "any number".
std::string range_text(const Bounds& bounds);
std::string range_text(int64_t min, int64_t max);

/// The text in double quotes, printable, cut after 60 bytes.
std::string shown(std::string_view text);
using core::is_utf8;
using core::split_words;

// "Did you mean" for words of any length and origin.

/// The name that was probably meant by `word`, or "" when none is near. Words of up to three letters only
/// match names that begin alike, since nearly everything is near them; words beyond 64 bytes match nothing.
std::string near_name(const std::string& word, const std::vector<std::string>& names);
/// "; did you mean NAME?" or "", with `prefix` ("--") before the name.
std::string suggestion(const std::string& word, const std::vector<std::string>& names, const std::string& prefix = "");

}  // namespace stoker::config
