// SPDX-License-Identifier: Apache-2.0
// The console: log lines, and on a terminal one live line below them. Independent of training.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.h"

namespace stoker::observe {

// A line of figures that fits any width: where not all of them fit, the least important ones go first. Handles text,
// neither terminals nor training.

/// Parts stand in the order in which they are read.
struct LinePart {
  std::string text;         ///< empty: left out
  int rank = 0;             ///< the highest goes first when the line is too long; of equals the rightmost
  bool bar = false;         ///< " | " stands between it and a part before it that has this too; else two spaces
  const char* colour = "";  ///< as terminals take it: "32" is green, "1" bold
  double done = -1;         ///< 0 to 1: a progress bar, of the columns that the others leave; its text is empty
};

/// The parts that fit into `columns` characters of UTF-8; at least the most important one, cut if need be.
std::string fit_line(std::vector<LinePart> parts, int columns, bool in_colour = false);
/// All parts but progress bars.
std::string whole_line(const std::vector<LinePart>& parts);

/// Characters of UTF-8 text.
int character_count(const std::string& text);
/// The first `columns` characters of UTF-8 text: never half a character.
std::string cut_to_columns(const std::string& text, int columns);

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
  Console& operator=(Console&&) = delete;  // not copied, not moved

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
  std::string logged_, instead_;  ///< line and its replacement, from log_as()
};

/// Columns of the terminal on stdout; 80 when unknown.
int terminal_columns();

}  // namespace stoker::observe
