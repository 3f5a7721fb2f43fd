// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace stoker::observe {
namespace {

// The cursor rests at the beginning of the live line. A terminal that is made narrower breaks the line over several
// rows and keeps the cursor on the first of them, so that erasing from there to the end of the screen leaves nothing.
constexpr const char* kToLineBegin = "\r";
constexpr const char* kEraseBehind = "\x1b[J";
// A multiplexer may report its new width late: until then too long a line is cut instead of broken.
constexpr const char* kCutLongLines = "\x1b[?7l";
constexpr const char* kBreakLongLines = "\x1b[?7h";

bool takes_colour() {
  const char* const refused = std::getenv("NO_COLOR");
  return refused == nullptr || *refused == '\0';
}

}  // namespace

int terminal_columns() {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

ShownProgress shown_progress(const std::string& word) {
  return word == "off" ? ShownProgress::off : word == "plain" ? ShownProgress::plain : ShownProgress::bar;
}

Console::Console(bool quiet, ShownProgress progress)
    : progress_(progress),
      live_(!quiet && progress == ShownProgress::bar && core::terminal_can_rewrite()),
      colour_(live_ && takes_colour()) {
  core::set_console_writer([this](core::LogLevel level, std::string_view line) { write_line(level, line); },
                           [this](std::string_view line) {
                             line.empty() ? clear_live() : show_live({{std::string(line)}});
                             return live_;
                           });
}

Console::~Console() {
  clear_live();
  core::set_console_writer(nullptr);
}

void Console::show_live(std::vector<LinePart> line) {
  if (!live_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  line_ = std::move(line);
  draw_live_locked();
}

void Console::log_as(const std::string& line, const std::string& shown) {
  if (live_) {
    const std::lock_guard<std::mutex> lock(mutex_);
    logged_ = line;
    instead_ = shown;
  }
  core::log_info("{}", line);
  const std::lock_guard<std::mutex> lock(mutex_);
  logged_.clear();
}

std::string Console::fitted(const std::vector<LinePart>& parts, const std::string& indent, int most_columns) const {
  return indent + fit_line(parts, std::min(terminal_columns() - 1, most_columns) - character_count(indent), colour_);
}

void Console::clear_live() {
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_live_locked();
  line_.clear();
}

void Console::draw_live_locked() {
  if (line_.empty()) return;
  // Never into the last column: some terminals then continue in the next row.
  const std::string text = fit_line(line_, terminal_columns() - 1, colour_);
  std::printf("%s%s%s%s%s%s", kToLineBegin, kCutLongLines, text.c_str(), kBreakLongLines, kEraseBehind, kToLineBegin);
  std::fflush(stdout);
}

void Console::erase_live_locked() {
  if (line_.empty()) return;
  std::printf("%s%s", kToLineBegin, kEraseBehind);
  std::fflush(stdout);
}

void Console::write_line(core::LogLevel level, std::string_view line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!logged_.empty() && line == logged_) line = instead_;
  if (line.empty() && !logged_.empty()) return;
  erase_live_locked();
  std::FILE* const stream = level >= core::LogLevel::warning ? stderr : stdout;
  std::fprintf(stream, "%s%.*s\n", core::console_prefix(level), static_cast<int>(line.size()), line.data());
  std::fflush(stream);
  draw_live_locked();
}

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
