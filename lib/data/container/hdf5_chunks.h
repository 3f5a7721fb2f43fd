// SPDX-License-Identifier: Apache-2.0
// Lists where the chunks of an HDF5 data set lie. The library's own list is used where it is fast; HDF5 before 1.14.3
// has none, and finding the n-th chunk by counting from the first takes minutes for 200,000 of them. Included by
// hdf5_file.cpp alone.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "data/container/sample_array.h"
#include "data/source.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {

/// A chunk and the sample, plane, row, ... [rank] at which it begins.
using ChunkFound = std::function<void(const std::vector<uint64_t>& begin, const ChunkPlace& place)>;

/// The inputs of the search.
struct ChunkedDataSet {
  hid_t file = -1, data_set = -1;
  const ByteReader& bytes;   ///< reader of the file
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

// The library's handles and types in our terms. Included by hdf5_file.cpp and hdf5_chunks.cpp alone.

/// Owns what the library has opened. A negative id is not open.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (is_open()) close_(id_);
  }

  bool is_open() const { return id_ >= 0; }
  hid_t id() const { return id_; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// False for a type that samples cannot have: anything but uint8, IEEE half and single precision,
/// little-endian.
bool hdf5_element(hid_t type, Element& element);
/// "float16", "big-endian int32", "string": for messages.
std::string hdf5_type_text(hid_t type);
/// More dimensions than this are not read.
inline constexpr int kMaxRank = 8;
/// Sides of an open data set; empty for a single value.
std::vector<int64_t> hdf5_dims(hid_t data_set);
/// "[200000, 64, 64]"
std::string sides_text(const std::vector<int64_t>& sides);
/// Where the library got stuck, in its own words.
std::string hdf5_library_words();
/// Where the object header of an open data set lies in the file.
bool hdf5_object_address(hid_t data_set, uint64_t& address);

// The chunks of an HDF5 data set, found by walking its B-tree. Only the structures that HDF5 writes by
// default are supported: object headers of version 1, layout messages of version 3, B-trees of
// version 1 (HDF5 File Format Specification, version 3). For HDF5 before 1.14.3: hdf5_chunks.h has the reason.

/// Calls `found` with the place of each chunk and the sample, plane, row, ... [rank] at which it begins, in
/// no particular order. False, before the first call, where the file has other structures: the library must
/// list them then. Throws core::Error{data} when a structure is damaged, {io} when the storage fails.
/// `most_chunks`: more than that make a damaged tree.
bool visit_chunk_tree(const ByteReader& file, uint64_t object_header, size_t rank, uint64_t most_chunks,
                      const std::function<void(const std::vector<uint64_t>& begin, const ChunkPlace& place)>& found);

}  // namespace stoker::data
