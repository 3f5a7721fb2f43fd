// SPDX-License-Identifier: Apache-2.0
// The console: log lines, and on a terminal one live line below them. Independent of training.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"
#include "observe/listeners/live_line.h"

namespace stoker::observe {

/// How --progress has it: a live line where stdout is a terminal, else lines; lines everywhere; neither.
enum class ShownProgress { bar, plain, off };
/// "bar", "plain" or "off".
ShownProgress shown_progress(const std::string& word);

/// While it lives, log lines go through it and never tear the live line. Without a terminal on stdout, or with
/// TERM unset or dumb, there is no live line and no control character; with NO_COLOR no colour. Safe from any thread.
class Console {
 public:
  explicit Console(bool quiet, ShownProgress progress = ShownProgress::bar);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool is_live() const { return live_; }
  /// False: progress is not even reported in lines.
  bool shows_progress() const { return progress_ != ShownProgress::off; }
  /// Replaces the live line, fitted to the terminal's width of now; nothing without a terminal.
  void show_live(std::vector<LinePart> line);
  /// Logs a line. A terminal shows other text in its place, which may have several lines, or be empty: nothing.
  void log_as(const std::string& line, const std::string& shown);
  /// The parts for the width of now behind `indent`, in colour.
  std::string fitted(const std::vector<LinePart>& parts, const std::string& indent = "", int most_columns = 1000) const;
  /// Ends the live line so that what follows starts on a fresh one.
  void clear_live();

 private:
  void write_line(core::LogLevel level, std::string_view line);
  void draw_live_locked();
  void erase_live_locked();

  std::mutex mutex_;
  const ShownProgress progress_;
  const bool live_, colour_;
  std::vector<LinePart> line_;    ///< empty: none is shown
  std::string logged_, instead_;  ///< of log_as()
};

/// Columns of the terminal on stdout; 80 when unknown.
int terminal_columns();

}  // namespace stoker::observe
