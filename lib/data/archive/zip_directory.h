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
  uint64_t begin = 0;         ///< of its bytes, behind the local header
  uint64_t stored_bytes = 0;  ///< all inside the file
  uint64_t bytes = 0;         ///< once inflated; at most 1032 times as many, which is the most that deflate can
  bool deflated = false;
  uint32_t checksum = 0;  ///< CRC-32
};

/// Sorted by name; no name twice. Throws Error{data}.
std::vector<ZipMember> read_zip_directory(const ByteReader& file);

}  // namespace stoker::data
