// SPDX-License-Identifier: Apache-2.0
// The data sets of an HDF5 file and their places. The library is used on one thread and at the
// start alone: samples are read without it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/container/sample_array.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {

/// The numbers that are learned, one row per sample.
struct LabelArray {
  std::string name;
  std::vector<int64_t> dims;   ///< [samples] or [samples, columns]; sides of 1 at the end are left out
  std::string type;            ///< "int64", "float32": for messages
  bool is_whole = false;       ///< true for an integer type, or for bools
  std::vector<double> values;  ///< row-major
  int64_t columns() const { return dims.size() > 1 ? dims[1] : 1; }
};

/// One file, open for reading. One thread.
class Hdf5File {
 public:
  /// Throws core::Error: no_input where it cannot be read, data where it is no HDF5 file.
  explicit Hdf5File(const std::string& path);
  ~Hdf5File();
  Hdf5File& operator=(Hdf5File&&) = delete;  // not copied, not moved

  const std::string& path() const;
  /// Bytes of the file, for reads of one's own.
  std::shared_ptr<const FileBytes> bytes() const;
  bool has_group(const std::string& name) const;  ///< "" is the root
  bool has_data_set(const std::string& name) const;
  /// A line for each data set, such as "train/x  float16 [200000, 64, 64]"; at most 40.
  std::vector<std::string> data_set_lines() const;
  /// Names of groups in the root, sorted; at most 40.
  std::vector<std::string> group_names() const;

  /// Where the numbers of a data set lie. Throws core::Error{data}, with what can be done, where it has
  /// another type, filter or storage than are read here.
  NumberArray array(const std::string& name) const;
  /// All numbers of a data set of [samples] or [samples, columns]. Throws core::Error{data} for other types
  /// and shapes.
  LabelArray labels(const std::string& name, int64_t samples) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::data
