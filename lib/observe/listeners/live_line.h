// SPDX-License-Identifier: Apache-2.0
// A line of figures that fits any width: where not all of them fit, the least important ones go first. Handles text,
// neither terminals nor training.
#pragma once

#include <string>
#include <vector>

namespace stoker::observe {

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

}  // namespace stoker::observe
