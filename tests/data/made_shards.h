// SPDX-License-Identifier: Apache-2.0
// The data of the tests of shards: small data sets in every layout, packed ones, and archives of other
// makers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/pack/pack.h"
#include "data/source.h"
#include "made_data.h"

namespace stoker::data {

/// train/{cat,dog} with 23 images of several formats and sizes, val/{cat,dog} with 6; names that are plain,
/// and names that are not.
void write_loose_images(const TempFolder& folder);

config::DataOptions options_for(const std::string& data_dir);
std::shared_ptr<const Source> train_of(const std::string& data_dir);

/// Settings for a folder: shards of `shard_images`, `threads` threads.
PackSettings pack_settings(const std::string& directory, int64_t shard_images = 8, int64_t threads = 2);
/// Packs every usual split of a data set.
PackReport pack_folder(const std::string& data_dir, const PackSettings& settings);

/// A tar archive of these members in this order.
std::string archive_of(const std::vector<std::pair<std::string, std::string>>& members);
std::string text_of(const Bytes& bytes);

/// Name and content of every file of a folder (not of folders in it), but for the lock.
std::vector<std::pair<std::string, std::string>> files_of(const std::string& directory);
/// Relative names, labels and encoded bytes of all samples, as one digest.
std::string content_digest(const Source& source);

}  // namespace stoker::data
