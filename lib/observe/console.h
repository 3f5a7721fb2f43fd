// SPDX-License-Identifier: Apache-2.0
// The console: log lines, and on a terminal one live line below them. Knows terminals, not training.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "core/log.h"

namespace stoker::observe {

/// While it lives, log lines go through it and never tear the live line. Without a terminal on stdout, or with
/// TERM unset or dumb, there is no live line and no control character. Safe from any thread.
class Console {
 public:
  explicit Console(bool quiet);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool is_live() const { return live_; }
  /// Replaces the live line, cut to the terminal's width; nothing without a terminal.
  void show_live(const std::string& line);
  /// Ends the live line so that what follows starts on a fresh one.
  void clear_live();

 private:
  void write_line(core::LogLevel level, std::string_view line);
  void erase_live_locked();

  std::mutex mutex_;
  bool live_;
  std::string shown_;
};

/// Columns of the terminal on stdout; 80 when it does not say.
int terminal_columns();
/// The first `columns` characters of UTF-8 text: never half a character.
std::string cut_to_columns(const std::string& text, int columns);

}  // namespace stoker::observe
