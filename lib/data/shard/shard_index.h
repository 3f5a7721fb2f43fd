// SPDX-License-Identifier: Apache-2.0
// The content of a shard: the index beside a tar archive that makes its samples readable in any order
// with one read each. docs/dev/file-formats.md shows the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::data {

/// One image of a shard: 24 bytes in memory and on disk.
struct ShardEntry {
  uint64_t offset;    ///< position of the image's first byte in the archive; a multiple of 512, its header lies before
  uint32_t size;      ///< bytes
  int32_t label;      ///< >= 0; -1: none
  uint64_t name_end;  ///< end of its name in ShardIndex::names; it begins where the one before ends
};
static_assert(sizeof(ShardEntry) == 24, "an entry must stay small: there are millions");

inline constexpr uint32_t kMaxShardImageBytes = 1u << 30;
inline constexpr int32_t kMaxShardLabel = 999'999;

struct ShardIndex {
  uint64_t shard_bytes = 0;   ///< size of the archive that this describes
  uint64_t first_source = 0;  ///< number of the first sample of the packed data set that was looked at
  uint64_t source_count = 0;  ///< how many were: entries and the bad images between them
  std::string shard_digest;   ///< XXH3-128 of the archive, 32 hexadecimal digits; empty: not known
  std::string pack_identity;  ///< digest of what was packed and how, 32 hexadecimal digits; empty: not ours
  std::vector<ShardEntry> entries;
  std::string names;  ///< relative names, one after another

  std::string_view name(size_t entry) const {
    const uint64_t begin = entry == 0 ? 0 : entries[entry - 1].name_end;
    return std::string_view(names).substr(begin, entries[entry].name_end - begin);
  }
  void add(uint64_t offset, uint32_t size, int32_t label, std::string_view name) {
    names.append(name);
    entries.push_back({offset, size, label, names.size()});
  }
};

/// The index of `train-000000.tar` is `train-000000.tar.index`.
inline std::string index_path_of(const std::string& shard_path) { return shard_path + ".index"; }

std::string shard_index_text(const ShardIndex& index);
/// Reads untrusted bytes; every number is checked against the others. Throws core::Error{data} whose message
/// begins with `path`.
ShardIndex parse_shard_index(const uint8_t* bytes, uint64_t size, const std::string& path);
/// Reads and parses a file. Throws as core::read_file() does, too.
ShardIndex read_shard_index(const std::string& path);

}  // namespace stoker::data
