// SPDX-License-Identifier: Apache-2.0
// HDF5 files for tests, written by the library's own means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "made_data.h"

namespace stoker::data {

/// How a data set lies in its file.
struct Hdf5Recipe {
  std::vector<int64_t> chunk = {};  ///< empty: in one piece
  bool shuffle = false, deflate = false, fletcher32 = false, compact = false;
  bool lzf = false;                ///< named as the filter of its chunks, which nothing here has
  std::string external_file = {};  ///< numbers in a file of their own
  bool leave_unwritten = false;
  bool may_grow = false;  ///< along every side, so that chunks may be larger than what there is
  int64_t written = -1;   ///< samples that are written; -1: all
};

/// One file, finished when this goes. Numbers are given as their bytes in the file.
class MadeHdf5 {
 public:
  /// `latest`: with the structures of the library's latest release. `user_block`: bytes before the file's
  /// own.
  explicit MadeHdf5(const std::string& path, bool latest = false, uint64_t user_block = 0);
  ~MadeHdf5();
  MadeHdf5& operator=(MadeHdf5&&) = delete;  // not copied, not moved

  /// `type`: uint8, int8, int16, int64, float16, float32, float64, big-endian float32, bool, string. A name
  /// such as "train/x" makes the group as well.
  void add(const std::string& name, const std::string& type, const std::vector<int64_t>& dims, const Bytes& numbers,
           const Hdf5Recipe& recipe = {});
  void add_labels(const std::string& name, const std::vector<int64_t>& labels);
  /// A data set whose numbers are those of `source`, another data set of the file.
  void add_virtual(const std::string& name, const std::string& source, const std::vector<int64_t>& dims);

 private:
  int64_t file_ = -1;
};

/// Bytes of [samples, ...] numbers, all different from their neighbours.
Bytes made_numbers(int64_t count, int bytes_each);
/// Bytes of float32 numbers.
Bytes floats_of(const std::vector<float>& values);
/// Where the object header of a data set lies.
uint64_t object_header_of(const std::string& path, const std::string& name);

}  // namespace stoker::data
