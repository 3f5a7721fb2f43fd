// SPDX-License-Identifier: Apache-2.0
// The bytes of a member of an archive as they were before they were written.
#pragma once

#include <string>

#include "data/storage/byte_reader.h"

namespace stoker::data {

/// Bytes that one deflated byte stands for at most (zlib's technical notes).
inline constexpr uint64_t kMostInflated = 1032;

/// A run of bytes in a file, perhaps deflated.
struct Storage {
  size_t file = 0;            ///< which of the files, where there are several
  uint64_t begin = 0;         ///< place in that file
  uint64_t stored_bytes = 0;  ///< there; lie inside the file
  uint64_t bytes = 0;         ///< once inflated; equal to stored_bytes where it is not deflated
  bool deflated = false;
  uint32_t checksum = 0;  ///< CRC-32 of the inflated bytes; 0: none was written
};

/// Reads storage.bytes bytes. `name` is for messages. Throws Error{data} where the content does not inflate to that
/// many bytes or does not fit its checksum.
void read_stored(const ByteReader& file, const Storage& storage, const std::string& name, void* bytes);

}  // namespace stoker::data
