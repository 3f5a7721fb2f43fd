// SPDX-License-Identifier: Apache-2.0
// A source over tar shards: every sample in one read, in any order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/shard/shard_index.h"
#include "data/source.h"
#include "data/storage/staged_files.h"

namespace stoker::data {

struct Shard {
  std::string path;
  ShardIndex index;
  std::shared_ptr<const StagedFiles> staged = nullptr;  ///< copies, if any: they go with the source
  std::string copy = "";                                ///< that is read; empty: there is none
  const std::string& read_path() const { return copy.empty() ? path : copy; }
};

/// Samples in the order of the shards and of their entries. Archives stay open as far as the limit of open
/// files allows. Throws core::Error when an archive is missing or has another size than in its index.
std::shared_ptr<const Source> make_shard_source(std::vector<Shard> shards, std::vector<std::string> class_names);

}  // namespace stoker::data
