// SPDX-License-Identifier: Apache-2.0
#include "observe/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace stoker::observe {
namespace {

constexpr const char* kEraseLine = "\r\x1b[K";

bool terminal_can_rewrite() {
  const char* const term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) && term != nullptr && std::string_view(term) != "dumb" && *term != '\0';
}

}  // namespace

int terminal_columns() {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string cut_to_columns(const std::string& text, int columns) {
  int characters = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool starts_character = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (starts_character && ++characters > columns) return text.substr(0, at);
  }
  return text;
}

Console::Console(bool quiet) : live_(!quiet && terminal_can_rewrite()) {
  core::set_console_writer([this](core::LogLevel level, std::string_view line) { write_line(level, line); });
}

Console::~Console() {
  clear_live();
  core::set_console_writer(nullptr);
}

void Console::show_live(const std::string& line) {
  if (!live_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  shown_ = cut_to_columns(line, terminal_columns() - 1);
  std::printf("%s%s", kEraseLine, shown_.c_str());
  std::fflush(stdout);
}

void Console::clear_live() {
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_live_locked();
  shown_.clear();
}

void Console::erase_live_locked() {
  if (shown_.empty()) return;
  std::fputs(kEraseLine, stdout);
  std::fflush(stdout);
}

void Console::write_line(core::LogLevel level, std::string_view line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  erase_live_locked();
  std::FILE* const stream = level >= core::LogLevel::warning ? stderr : stdout;
  const char* const prefix = level == core::LogLevel::warning ? "warning: " : level == core::LogLevel::error ? "error: " : "";
  std::fprintf(stream, "%s%.*s\n", prefix, static_cast<int>(line.size()), line.data());
  std::fflush(stream);
  if (shown_.empty()) return;
  std::fputs(shown_.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace stoker::observe
