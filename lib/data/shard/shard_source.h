// SPDX-License-Identifier: Apache-2.0
// A source over tar shards: every sample in one read, in any order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/shard/shard_index.h"
#include "data/source.h"
#include "data/storage/staged_file.h"

namespace stoker::data {

struct Shard {
  std::string path;
  ShardIndex index;
  std::shared_ptr<const StagedFile> staged = nullptr;  ///< the copy that is read, if any: it goes with the source
  const std::string& read_path() const { return staged == nullptr ? path : staged->path(); }
};

/// Samples in the order of the shards and of their entries. Archives stay open as far as the limit of open
/// files allows. Throws core::Error when an archive is missing or has another size than its index says.
std::shared_ptr<const Source> make_shard_source(std::vector<Shard> shards, std::vector<std::string> class_names);

}  // namespace stoker::data
