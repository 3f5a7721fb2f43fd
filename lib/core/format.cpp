// SPDX-License-Identifier: Apache-2.0
#include "core/format.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <utility>

namespace stoker::core {
namespace {

/// Letters to insert, leave out, replace, or swap with the next one.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

/// Bytes of the UTF-8 sequence that starts at `at`, or 0 when it is not well formed.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  if (length == 3 && ((lead == 0xE0 && byte(at + 1) < 0xA0) || (lead == 0xED && byte(at + 1) > 0x9F))) return 0;
  if (length == 4 && ((lead == 0xF0 && byte(at + 1) < 0x90) || (lead == 0xF4 && byte(at + 1) > 0x8F))) return 0;
  return length;
}

}  // namespace

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 999.95 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? format("{:.0f} B", bytes) : format("{:.1f} {}", bytes, units[unit]);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "n/a";
  if (seconds < 60) return format("{:.1f}s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 3600) return format("{}m{:02d}s", whole / 60, whole % 60);
  return format("{}h{:02d}m", whole / 3600, whole % 3600 / 60);
}

std::string count_text(int64_t count) {
  std::string digits = std::to_string(std::llabs(count));
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), ",");
  return count < 0 ? "-" + digits : digits;
}

std::string counted(int64_t count, const std::string& noun) {
  return count_text(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string utc_text(int64_t unix_seconds) {
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string list_text(const std::vector<std::string>& items, size_t limit) {
  const size_t shown = std::min(limit, items.size());
  const size_t rest = items.size() - shown;
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == shown && rest == 0;
    if (i > 0) text += last ? " and " : ", ";
    text += items[i];
  }
  if (rest > 0) text += format(" and {} more", rest);
  return text;
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  constexpr size_t kLongestWord = 100;  // the time grows with its square; nobody mistypes more
  if (word.size() > kLongestWord) return "";
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    if ((length = utf8_length(text, at)) == 0) return false;
  }
  return true;
}

std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find(separator, begin);
    std::string_view word = text.substr(begin, end == std::string_view::npos ? end : end - begin);
    while (!word.empty() && (word.front() == ' ' || word.front() == '\t')) word.remove_prefix(1);
    while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.remove_suffix(1);
    words.emplace_back(word);
  }
  return words;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end > 0 && text[end - 1] == '\r' ? end - 1 : end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// `kept`: control characters that stay.
static std::string without_controls(std::string_view bytes, std::string_view kept) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = utf8_length(bytes, at);
    const auto byte = static_cast<unsigned char>(bytes[at]);
    // U+0080 to U+009F are controls, too: U+009B begins an escape sequence by itself.
    const bool is_second_set = length == 2 && byte == 0xC2 && static_cast<unsigned char>(bytes[at + 1]) < 0xA0;
    // U+202A to U+202E and U+2066 to U+2069 show what follows in another order than it has.
    const std::string_view sequence = bytes.substr(at, length);
    const bool is_order = (sequence >= "\xe2\x80\xaa" && sequence <= "\xe2\x80\xae") ||
                          (sequence >= "\xe2\x81\xa6" && sequence <= "\xe2\x81\xa9");
    const bool is_control = byte < 0x20 || byte == 0x7F || is_second_set || is_order;
    if (length == 0 || (is_control && kept.find(bytes[at]) == std::string_view::npos)) {
      for (size_t i = 0; i < std::max<size_t>(1, length); ++i, ++at) {
        text += format("\\x{:02x}", static_cast<unsigned char>(bytes[at]));
      }
    } else {
      text += bytes.substr(at, length);
      at += length;
    }
  }
  return text;
}

std::string printable(std::string_view bytes) { return without_controls(bytes, ""); }

std::string terminal_text(std::string_view text) { return without_controls(text, "\n\t"); }

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return printable(quoted + "'");
}

}  // namespace stoker::core
