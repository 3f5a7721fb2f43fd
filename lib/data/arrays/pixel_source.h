// SPDX-License-Identifier: Apache-2.0
// A source of pixels that are held in memory, whatever kind of file they came out of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/archive/pickle_reader.h"
#include "data/source.h"

namespace stoker::data {

struct HeldPixels {
  std::string kind;  ///< "idx": part of the fingerprint
  std::string path;  ///< of the file; its samples are called path#0, path#1, ...
  int height = 0, width = 0, channels = 1;
  std::vector<uint8_t> pixels;  ///< [samples, height, width, channels]
  std::vector<int32_t> labels;  ///< [samples]
};

/// Throws Error{data} that names `labels_path` where a label is not below the number of classes.
std::shared_ptr<const Source> make_pixel_source(HeldPixels held, const std::string& labels_path,
                                                std::vector<std::string> class_names);

/// Before that many bytes of a file's content are read into memory. Throws Error{out_of_memory} where less is free.
void require_free_memory(const std::string& path, uint64_t bytes);

/// "0" to "<classes - 1>".
std::vector<std::string> numbered_classes(int64_t classes);

// Arrays that NumPy wrote: .npy files, members of .npz files, and those inside pickles.

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
