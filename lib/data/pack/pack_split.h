// SPDX-License-Identifier: Apache-2.0
// Packs one split: samples in order, worked on by threads, into one shard after another; what an interrupted
// pack has finished is kept. The inside of pack.h.
#pragma once

#include <optional>
#include <string>

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

}  // namespace stoker::data
