// SPDX-License-Identifier: Apache-2.0
// The console: log lines, and on a terminal one live line below them. Knows terminals, not training.
#pragma once

#include <mutex>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "observe/listeners/live_line.h"

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
  /// Replaces the live line, fitted to the terminal's width of now; nothing without a terminal.
  void show_live(std::vector<LinePart> line);
  /// Ends the live line so that what follows starts on a fresh one.
  void clear_live();

 private:
  void write_line(core::LogLevel level, std::string_view line);
  void draw_live_locked();
  void erase_live_locked();

  std::mutex mutex_;
  bool live_;
  std::vector<LinePart> line_;  ///< empty: none is shown
};

/// Columns of the terminal on stdout; 80 when it does not say.
int terminal_columns();

}  // namespace stoker::observe
