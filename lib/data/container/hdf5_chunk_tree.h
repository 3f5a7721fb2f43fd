// SPDX-License-Identifier: Apache-2.0
// The chunks of an HDF5 data set, found by walking its B-tree. Only the structures that HDF5 writes by
// default are supported: object headers of version 1, layout messages of version 3, B-trees of
// version 1 (HDF5 File Format Specification, version 3). For HDF5 before 1.14.3: hdf5_chunks.h has the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/container/number_array.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {

/// Calls `found` with the place of each chunk and the sample, plane, row, ... [rank] at which it begins, in
/// no particular order. False, before the first call, where the file has other structures: the library must
/// be asked then. Throws core::Error{data} when a structure is damaged, {io} when the storage fails.
/// `most_chunks`: more than that make a damaged tree.
bool visit_chunk_tree(const ByteReader& file, uint64_t object_header, size_t rank, uint64_t most_chunks,
                      const std::function<void(const std::vector<uint64_t>& begin, const ChunkPlace& place)>& found);

}  // namespace stoker::data
