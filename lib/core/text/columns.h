// SPDX-License-Identifier: Apache-2.0
// Rows of cells as columns of plain text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stoker::core {

/// A line per row, without its end: columns two blanks apart, as wide as their widest cell; flush left, from column
/// `first_number` on flush right. Rows may have fewer cells than others.
std::vector<std::string> aligned_rows(const std::vector<std::vector<std::string>>& rows, size_t first_number = 0);

}  // namespace stoker::core
