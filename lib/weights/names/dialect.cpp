// SPDX-License-Identifier: Apache-2.0
#include "weights/names/dialect.h"

#include <array>
#include <cstdint>

#include "core/error.h"

namespace stoker::weights {
namespace {

constexpr size_t kMaxDigits = 6;
constexpr size_t kLetters = 26;

struct Captures {
  std::array<int64_t, kLetters> numbers{};
  std::string_view rest;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void fail_pattern(std::string_view pattern) {
  throw core::Error(core::ErrorKind::bug, "the pattern of names " + std::string(pattern) + " is wrong");
}

/// The number of the letter in {s}; `at` stands behind the brace and moves behind the other one.
size_t letter_at(std::string_view pattern, size_t& at) {
  if (at + 1 >= pattern.size() || pattern[at] < 'a' || pattern[at] > 'z' || pattern[at + 1] != '}')
    fail_pattern(pattern);
  at += 2;
  return static_cast<size_t>(pattern[at - 2] - 'a');
}

bool fits(std::string_view pattern, std::string_view name, Captures& captures) {
  size_t at = 0, read = 0;  // in pattern, in name
  while (at < pattern.size()) {
    if (pattern[at] == '*') {
      captures.rest = name.substr(read);
      return true;
    }
    if (pattern[at] != '{') {
      if (read >= name.size() || name[read] != pattern[at]) return false;
      ++at, ++read;
      continue;
    }
    const size_t letter = letter_at(pattern, ++at);
    int64_t number = 0;
    const size_t begin = read;
    for (; read < name.size() && is_digit(name[read]) && read - begin < kMaxDigits; ++read) {
      number = number * 10 + (name[read] - '0');
    }
    if (read == begin) return false;
    captures.numbers[letter] = number;
  }
  return read == name.size();
}

int64_t number_at(std::string_view pattern, size_t& at) {
  int64_t number = 0;
  while (at < pattern.size() && is_digit(pattern[at])) number = number * 10 + (pattern[at++] - '0');
  return number;
}

/// {2s+1}, {b-1}: `at` stands behind the brace and moves behind the other one.
int64_t calculated(std::string_view pattern, size_t& at, const Captures& captures) {
  const int64_t factor = is_digit(pattern.at(at)) ? number_at(pattern, at) : 1;
  const char letter = pattern.at(at++);
  if (letter < 'a' || letter > 'z') fail_pattern(pattern);
  int64_t number = factor * captures.numbers[static_cast<size_t>(letter - 'a')];
  const char sign = pattern.at(at);
  if (sign == '+' || sign == '-') number += (sign == '+' ? 1 : -1) * number_at(pattern, ++at);
  if (pattern.at(at++) != '}') fail_pattern(pattern);
  return number;
}

std::string filled(std::string_view pattern, const Captures& captures) {
  std::string text;
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '*') {
      text += captures.rest;
      ++at;
    } else if (pattern[at] == '{') {
      text += std::to_string(calculated(pattern, ++at, captures));
    } else {
      text += pattern[at++];
    }
  }
  return text;
}

}  // namespace

NameKind translate(const Dialect& dialect, std::string_view theirs, OurName& ours) {
  if (!dialect.body.empty() && theirs.substr(0, dialect.body.size()) == dialect.body) {
    theirs.remove_prefix(dialect.body.size());
  }
  Captures captures;
  for (const std::string& pattern : dialect.idle) {
    if (fits(pattern, theirs, captures)) return NameKind::idle;
  }
  for (const NameRow& row : dialect.rows) {
    if (!fits(row.theirs, theirs, captures)) continue;
    ours = {filled(row.ours, captures), row.part, row.parts};
    return NameKind::known;
  }
  return NameKind::unknown;
}

}  // namespace stoker::weights
