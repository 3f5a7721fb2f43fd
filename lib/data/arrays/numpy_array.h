// SPDX-License-Identifier: Apache-2.0
// Arrays that NumPy wrote: .npy files, members of .npz files, and those inside pickles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/archive/pickle_reader.h"

namespace stoker::data {

struct PythonArray {
  std::string what;  ///< names the file, and the array in it, in messages
  std::string type;  ///< "|u1", "<f4", as NumPy writes it
  std::vector<int64_t> shape;
  std::string bytes;         ///< as many as type and shape require, row by row
  std::string path, member;  ///< the file that np.load() reads, and its member; empty: the array is part of a pickle

  /// Throws Error{data}: "<what>: cause".
  [[noreturn]] void fail(const std::string& cause, const std::string& hint) const;
  /// "int64 [60000, 28, 28]".
  std::string words() const;
};

/// The content of a .npy file. Throws Error{data}.
PythonArray read_npy(std::string content, const std::string& what);

/// Bytes or text in a pickle: as they stand there, or by _codecs.encode(text, "latin1"), bytes() or bytearray(), as
/// Python 3 writes bytes for protocol 2. nullopt: it is something else.
std::optional<std::string> bytes_in_pickle(const PickleTree& tree, ValueIndex index);
/// A whole number in a pickle, of Python or of NumPy. nullopt: it is something else.
std::optional<int64_t> integer_in_pickle(const PickleTree& tree, ValueIndex index);
/// Whether a value of a pickle is an array of NumPy.
bool is_array_in_pickle(const PickleTree& tree, ValueIndex index);
/// The array that an opaque value of a pickle stands for, as protocols 0 to 5 of Python 2 and 3 write it. Throws
/// Error{data} when it is none.
PythonArray array_in_pickle(const PickleTree& tree, ValueIndex index, const std::string& what);

/// Whole numbers [N] out of integers, floats without fraction, [N, 1], or one 1 per row of [N, classes]. Throws
/// Error{data}.
std::vector<int32_t> labels_in(const PythonArray& array);

/// Images of bytes or bools: [N, H, W], or [N, H, W, C] and [N, C, H, W] with 1, 3 or 4 channels, of which the fourth
/// is alpha, over black. Sizes go to the other arguments. Throws Error{data} whose hint is how to write them.
std::vector<uint8_t> pixels_in(PythonArray array, int& height, int& width, int& channels);

}  // namespace stoker::data
