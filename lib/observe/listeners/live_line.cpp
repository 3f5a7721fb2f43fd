// SPDX-License-Identifier: Apache-2.0
#include "observe/listeners/live_line.h"

#include <algorithm>

namespace stoker::observe {
namespace {

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

int character_count(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string cut_to_columns(const std::string& text, int columns) {
  int characters = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (starts_character(text[at]) && ++characters > columns) return text.substr(0, at);
  }
  return text;
}

std::string whole_line(const std::vector<LinePart>& parts) {
  std::string line;
  bool after_bar_part = false;
  for (const LinePart& part : parts) {
    if (part.text.empty()) continue;
    if (!line.empty()) line += part.bar && after_bar_part ? " | " : "  ";
    line += part.text;
    after_bar_part = part.bar;
  }
  return line;
}

std::string fit_line(std::vector<LinePart> parts, int columns) {
  std::string line = whole_line(parts);
  while (character_count(line) > columns && parts.size() > 1) {
    const auto least = std::max_element(parts.rbegin(), parts.rend(),
                                        [](const LinePart& a, const LinePart& b) { return a.rank < b.rank; });
    parts.erase(std::next(least).base());
    line = whole_line(parts);
  }
  return cut_to_columns(line, columns);
}

}  // namespace stoker::observe
