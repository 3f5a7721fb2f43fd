// SPDX-License-Identifier: Apache-2.0
#include "core/text/columns.h"

#include <algorithm>

#include "core/format.h"

namespace stoker::core {

std::vector<std::string> aligned_rows(const std::vector<std::vector<std::string>>& rows, size_t first_number) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i == 0 ? "" : "  ";
      line += i < first_number ? format("{:<{}}", row[i], widths[i]) : format("{:>{}}", row[i], widths[i]);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace stoker::core
