// SPDX-License-Identifier: Apache-2.0
// Packs one split: samples in order, worked on by threads, into one shard after another; what an interrupted
// pack has finished is kept. The inside of pack.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/system/file.h"
#include "data/pack/pack.h"
#include "data/shard/shard_index.h"

namespace stoker::data {

struct PackJob {
  const PackSettings& settings;
  const std::function<void(const PackProgress&)>& on_progress;
  PackReport report;
  PackProgress progress;
};

/// Digest of what is packed and how: shards of equal identities and places have equal bytes.
std::string pack_identity(const SplitToPack& split, const PackSettings& settings);
/// The index of a shard that is there with the right size; nothing when either is missing or damaged. The
/// archive is not read.
std::optional<ShardIndex> index_of_finished(const std::string& shard_path);
/// Throws as pack() does.
PackedSplit pack_split(const SplitToPack& split, PackJob& job);

// Writes one shard and its index: whole or absent, the same bytes for the same samples.

/// One sample as it stands in an archive: the members of the image and of its label with their padding.
struct ShardMembers {
  std::string bytes;
  uint64_t image_at = 0;    ///< position of the image's content in `bytes`
  uint32_t image_size = 0;  ///< bytes
  int32_t label = 0;
  std::string name;  ///< relative name of the sample
};

/// Members called `<key>.<extension>` and `<key>.cls`.
void make_members(const std::string& key, const std::string& extension, const std::vector<uint8_t>& image,
                  ShardMembers& members);

/// Bytes that a closed archive of `bytes` of members has.
uint64_t closed_shard_bytes(uint64_t bytes);

/// A shard under a temporary name until finish(). Throws core::Error as core::CheckedWriter does.
class ShardWriter {
 public:
  explicit ShardWriter(std::string path);

  void add(const ShardMembers& members);
  uint64_t bytes() const { return at_; }  ///< size of all members so far
  int64_t images() const { return static_cast<int64_t>(index_.entries.size()); }
  /// Closes the archive, gives it its name, and writes its index, which is the mark that the shard is whole.
  /// Returns the bytes of the archive.
  uint64_t finish(uint64_t first_source, uint64_t source_count, const std::string& pack_identity);

 private:
  const std::string path_;
  const std::string temporary_path_;
  core::CheckedWriter file_;
  core::Hasher hasher_;
  ShardIndex index_;
  uint64_t at_ = 0;
};

/// Removes what an interrupted ShardWriter has left in a folder that no other process uses.
void remove_unfinished_shards(const std::string& directory);

}  // namespace stoker::data
