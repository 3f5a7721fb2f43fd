// SPDX-License-Identifier: Apache-2.0
// What HDF5's filters did to a chunk, undone: deflate and byte shuffling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/container/number_array.h"

namespace stoker::data {

/// How many times its size deflate can make of a stored byte (zlib's documentation: 1032 to 1), rounded up.
constexpr int64_t kMaxInflation = 1040;

/// Undoes `filters`, of which those of `skipped` (bit i: filter i) were not applied, last first. `stored` are
/// the bytes of the file; it is used as scratch. `content` must have the size of the chunk and receives it.
/// At most one deflate. Returns "" or why the chunk is damaged.
std::string decode_chunk(const std::vector<ChunkFilter>& filters, uint32_t skipped, int element_bytes,
                         std::vector<uint8_t>& stored, std::vector<uint8_t>& content);

}  // namespace stoker::data
