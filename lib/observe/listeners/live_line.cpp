// SPDX-License-Identifier: Apache-2.0
#include "observe/listeners/live_line.h"

#include <algorithm>

namespace stoker::observe {
namespace {

constexpr int kLeastBar = 8, kMostBar = 30;  // columns

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

/// "[===>    ]": ASCII, which every terminal and locale can show.
std::string bar_text(double done, int columns) {
  const int inside = columns - 2;
  const int full = std::clamp(static_cast<int>(done * inside), 0, inside);
  std::string text = std::string(static_cast<size_t>(full), '=');
  if (full < inside) text += '>';
  text.resize(static_cast<size_t>(inside), ' ');
  return "[" + text + "]";
}

std::string joined_line(const std::vector<LinePart>& parts, bool in_colour) {
  std::string line;
  bool after_bar_part = false;
  for (const LinePart& part : parts) {
    if (part.text.empty()) continue;
    if (!line.empty()) line += part.bar && after_bar_part ? " | " : "  ";
    line += in_colour && *part.colour != '\0' ? std::string("\x1b[") + part.colour + "m" + part.text + "\x1b[0m"
                                              : part.text;
    after_bar_part = part.bar;
  }
  return line;
}

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

std::string whole_line(const std::vector<LinePart>& parts) { return joined_line(parts, /*in_colour=*/false); }

std::string fit_line(std::vector<LinePart> parts, int columns, bool in_colour) {
  for (LinePart& part : parts) {
    if (part.done >= 0) part.text = bar_text(part.done, kLeastBar);
  }
  while (character_count(whole_line(parts)) > columns && parts.size() > 1) {
    const auto least = std::max_element(parts.rbegin(), parts.rend(),
                                        [](const LinePart& a, const LinePart& b) { return a.rank < b.rank; });
    parts.erase(std::next(least).base());
  }
  const int left = columns - character_count(whole_line(parts));
  for (LinePart& part : parts) {
    if (part.done >= 0) part.text = bar_text(part.done, std::min(kLeastBar + std::max(left, 0), kMostBar));
  }
  if (left < 0) parts.front().text = cut_to_columns(parts.front().text, columns);  // the only one
  return joined_line(parts, in_colour);
}

}  // namespace stoker::observe
