// SPDX-License-Identifier: Apache-2.0
// Numbers out of MATLAB's level 5 MAT-files ("MAT-File Format", MathWorks), plain or zlib-compressed, as
// little-endian machines write them. Trusts nothing that it reads. Knows nothing of what the numbers mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::data {

/// A real numeric array, column by column.
struct MatArray {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;  ///< [rows * columns]
};

/// Reads the two-dimensional array `name`. Returns "" or what is wrong: not such a file, damaged, no such
/// array, not real numbers.
std::string read_mat_array(const uint8_t* bytes, uint64_t size, const std::string& name, MatArray& array);

}  // namespace stoker::data
