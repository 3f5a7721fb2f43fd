// SPDX-License-Identifier: Apache-2.0
// Packs splits of a data set into tar shards with indexes. The bytes are the same for any number of threads
// and after any interruption. Independent of command lines and terminals.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/pack/pack_image.h"
#include "data/shard/pack_manifest.h"
#include "data/source.h"

namespace stoker::data {

struct PackSettings {
  std::string directory;
  int64_t shard_images = 0;  ///< most images in a shard; 0: no limit
  uint64_t shard_bytes = 0;  ///< most bytes in a shard, but at least one image; 0: no limit
  PackRecipe recipe;
  config::OnBadImage on_bad_image = config::OnBadImage::fail;
  int64_t max_bad = 0;      ///< images, of all splits together
  int64_t num_threads = 0;  ///< 0: the calling thread alone
};

struct SplitToPack {
  std::string name;
  std::shared_ptr<const Source> source;
};

/// How far it is, over all splits.
struct PackProgress {
  int64_t images_done = 0, images_total = 0;
  uint64_t bytes_written = 0;
};

struct PackReport {
  bool was_complete = false;  ///< there was nothing to do
  int64_t images = 0, bad_images = 0, shards = 0;
  int64_t kept_shards = 0;  ///< found finished and verified by their digest
  uint64_t bytes = 0;       ///< total size of all archives
};

/// Locks the folder, keeps what an interrupted pack of the same data has finished, writes the rest.
/// `on_progress` is called on this thread after every image. Throws core::Error: {config} when the folder
/// holds a pack of other data or with other settings, {cannot_create} when foreign archives are in the way,
/// {data} for bad images, {run_dir_in_use}; core::StopRequested, after which finished shards stay.
PackReport pack(const std::vector<SplitToPack>& splits, const PackSettings& settings,
                const std::function<void(const PackProgress&)>& on_progress);

/// Writes an index beside every archive of a folder that has none, or one that cannot be read or has another
/// size in mind. Throws core::Error{data} for an archive that differs from a sound index.
struct IndexReport {
  int64_t written = 0, kept = 0;
  std::vector<std::string> notes;
};
IndexReport write_missing_indexes(const std::string& directory,
                                  const std::function<void(const std::string&)>& on_shard);

/// Reads every archive of a folder whole: digest, structure, labels and names against its index, and the
/// counts of pack.json.
struct VerifyReport {
  int64_t shards = 0, images = 0;
  uint64_t bytes = 0;
  std::vector<std::string> problems;  ///< path and cause, one per shard or split at most
  std::vector<std::string> notes;
};
VerifyReport verify_pack(const std::string& directory, const std::function<void(const std::string&)>& on_shard);

}  // namespace stoker::data
