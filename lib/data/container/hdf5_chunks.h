// SPDX-License-Identifier: Apache-2.0
// Lists where the chunks of an HDF5 data set lie. The library's own list is used where it is fast; HDF5 before 1.14.3
// has none, and finding the n-th chunk by counting from the first takes minutes for 200,000 of them. Included by
// hdf5_file.cpp alone.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/container/number_array.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {

/// A chunk and the sample, plane, row, ... [rank] at which it begins.
using ChunkFound = std::function<void(const std::vector<uint64_t>& begin, const ChunkPlace& place)>;

/// What is searched.
struct ChunkedDataSet {
  hid_t file = -1, data_set = -1;
  const ByteReader& bytes;   ///< of the file
  std::string name;          ///< "FILE: data set NAME", for messages
  size_t rank = 0;           ///< at most kMaxRank
  uint64_t most_chunks = 0;  ///< more than these make a damaged list
};

/// Calls `found` for each chunk that was written, in no particular order, by the first of the three ways below that
/// can. Throws core::Error{data} when the list is damaged, {io} when the storage fails, and what `found` throws.
void list_chunks(const ChunkedDataSet& searched, const ChunkFound& found);

/// By H5Dchunk_iter. False, before the first call, where this build's HDF5 lacks it.
bool list_chunks_by_library(const ChunkedDataSet& searched, const ChunkFound& found);
/// By walking the B-tree. False, before the first call, where the file has another structure.
bool list_chunks_by_tree(const ChunkedDataSet& searched, const ChunkFound& found);
/// By asking for one chunk after another, which is quadratic: more than 20,000 chunks are refused.
void list_chunks_one_by_one(const ChunkedDataSet& searched, const ChunkFound& found);

}  // namespace stoker::data
