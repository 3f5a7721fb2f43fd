// SPDX-License-Identifier: Apache-2.0
// Numbers out of MATLAB's level 5 MAT-files ("MAT-File Format", MathWorks), plain or zlib-compressed, as
// little-endian machines write them: matio reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stoker::data {

/// A real numeric array, column by column.
struct MatArray {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;  ///< [rows * columns]
};

/// One MAT-file of at most 16 MiB, open for reading. Several may be read at once from several threads.
class MatFile {
 public:
  MatFile();
  ~MatFile();
  MatFile& operator=(MatFile&&) = delete;  // not copied, not moved

  /// Returns "" or what is wrong: not such a file, cut short. Throws core::Error as core::read_file does
  /// (missing, unreadable, not a regular file, too long).
  std::string open(const std::string& path);

  /// Reads the two-dimensional array `name`, of at most 2^23 numbers, from an open file. Returns "" or what
  /// is wrong: no such array, damaged, not real numbers, too many, or cells or structures before it.
  std::string read_array(const std::string& name, MatArray& array);

  /// Reads a number and a text of each record of the array of structures `name`, of at most 2^20: ImageNet's devkit has
  /// its classes so. Returns "" or what is wrong. matio walks through them unwatched: not for files of strangers.
  std::string read_records(const std::string& name, const std::string& number, const std::string& text,
                           std::vector<double>& numbers, std::vector<std::string>& texts);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::data
