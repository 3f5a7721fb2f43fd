// SPDX-License-Identifier: Apache-2.0
// Where the numbers of one data set lie in a file: in one piece, or in chunks that may be filtered. Facts
// alone, free of the library that finds them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/sample_shape.h"

namespace stoker::data {

/// What was done to a chunk when it was written.
enum class ChunkFilter : uint8_t { deflate, shuffle };

/// One chunk in the file.
struct ChunkPlace {
  uint64_t offset = 0;           ///< from the beginning of the file
  uint32_t bytes = 0;            ///< as stored; 0: the chunk was never written
  uint32_t skipped_filters = 0;  ///< bit i: filter i was not applied to this chunk
};

/// Little-endian numbers in row-major order. Samples are counted by the first dimension.
struct NumberArray {
  std::string name;           ///< in the file, such as "train/x"
  std::vector<int64_t> dims;  ///< each at least 1
  Element element = Element::uint8;
  uint64_t offset = 0;               ///< of the first number, where there are no chunks
  std::vector<int64_t> chunk;        ///< sides of a chunk, as many as dims; empty: all in one piece
  std::vector<ChunkFilter> filters;  ///< in the order in which they were applied
  std::vector<ChunkPlace> places;    ///< of all chunks, row-major over the grid of chunks

  /// Chunks along dimension `i`; the last may reach beyond the data.
  int64_t grid(size_t i) const { return (dims[i] - 1) / chunk[i] + 1; }
};

}  // namespace stoker::data
