// SPDX-License-Identifier: Apache-2.0
// Text for people: {fmt} under our own name, and bytes, durations and counts with their units.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::core {

using fmt::format;

std::string bytes_text(double bytes);                         ///< "18.4 MB", "1.2 GB": powers of 1000
std::string duration_text(double seconds);                    ///< "4.2s", "3m12s", "2h05m"
std::string count_text(int64_t count);                        ///< "60,000"
std::string counted(int64_t count, const std::string& noun);  ///< "1 epoch", "2,000 epochs": noun in the singular
std::string utc_text(int64_t unix_seconds);                   ///< "2026-11-21T05:41:36Z"
bool ends_with(std::string_view text, std::string_view end);
/// Whether the bytes are well-formed UTF-8.
bool is_utf8(std::string_view text);
/// The fields between separators, without blanks around them; "a,,b" has three, "" has one.
std::vector<std::string> split_words(std::string_view text, char separator);
/// Without their ends, which may be those of Windows; what stands behind the last end is a line, too, unless empty.
std::vector<std::string> lines_of(std::string_view text);
std::string lower_case(std::string text);  ///< changes ASCII letters; others stay
/// "a, b and 3 more": at most `limit` of `items`.
std::string list_text(const std::vector<std::string>& items, size_t limit = 10);
/// The candidate with the smallest edit distance to `word`, or "" when none is close.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);
/// Printable form of a path of any bytes: control characters and invalid UTF-8 become \xNN.
std::string printable(std::string_view bytes);
/// printable() for text of several lines: newlines and tabs stay.
std::string terminal_text(std::string_view text);
/// A word as a POSIX shell reads it back: quoted where it holds more than letters, digits and the signs of paths and
/// options.
std::string shell_word(std::string_view word);

}  // namespace stoker::core
