// SPDX-License-Identifier: Apache-2.0
// Arrays that NumPy wrote: .npy files, members of .npz files, and those inside pickles.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/archive/pickle_value.h"

namespace stoker::data {

struct PythonArray {
  std::string what;         ///< names the file, and the array in it, in messages
  std::string type;         ///< "|u1", "<f4", as NumPy writes it
  bool is_fortran = false;  ///< columns first
  std::vector<int64_t> shape;
  std::string bytes;  ///< as many as type and shape require

  /// Throws Error{data}: "<what>: cause".
  [[noreturn]] void fail(const std::string& cause, const std::string& hint) const;
};

/// The content of a .npy file. Throws Error{data}.
PythonArray read_npy(std::string content, const std::string& what);

/// The array that an opaque value of a pickle stands for, as protocols 0 to 5 of Python 2 and 3 write it. Throws
/// Error{data} when it is none.
PythonArray array_in_pickle(const PickleTree& tree, ValueIndex index, const std::string& what);

/// Whole numbers [N] out of integers, floats without fraction, [N, 1], or one 1 per row of [N, classes]. Throws
/// Error{data}.
std::vector<int32_t> labels_in(const PythonArray& array);

/// Images of bytes: [N, H, W], or [N, H, W, C] and [N, C, H, W] with 1 or 3 channels. Sizes go to the other arguments.
/// Throws Error{data} whose hint is how to write them.
std::vector<uint8_t> pixels_in(PythonArray array, int& height, int& width, int& channels);

/// [N, C, H, W] to [N, H, W, C].
std::vector<uint8_t> channels_last(const uint8_t* planes, int64_t images, int channels, int64_t area);

}  // namespace stoker::data
