// SPDX-License-Identifier: Apache-2.0
// The lines of a text, for tests of files and of what programs print.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace stoker {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace stoker
