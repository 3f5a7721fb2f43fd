// SPDX-License-Identifier: Apache-2.0
// Where the members of a zip archive lie (PKWARE's APPNOTE 6.3, with zip64): stored or deflated, not encrypted, on one
// disk, none over another. Trusts nothing: the directory is compared with the file and the local headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/storage/byte_reader.h"

namespace stoker::data {

struct ZipMember {
  std::string name;
  uint64_t begin = 0;         ///< position of its bytes, behind the local header
  uint64_t stored_bytes = 0;  ///< all inside the file
  uint64_t bytes = 0;         ///< once inflated; at most 1032 times as many, which is the most that deflate can
  bool deflated = false;
  uint32_t checksum = 0;  ///< CRC-32
};

/// Sorted by name; no name twice. Throws Error{data}.
std::vector<ZipMember> read_zip_directory(const ByteReader& file);

// The bytes of a member of an archive as they were before they were written.

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
