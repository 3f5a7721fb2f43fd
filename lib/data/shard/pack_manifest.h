// SPDX-License-Identifier: Apache-2.0
// The files that describe a folder of shards: `pack.json`, which distinguishes a whole pack from half of one,
// and `classes.txt`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stoker::data {

/// One split of a pack.
struct PackedSplit {
  std::string identity;   ///< digest of what was packed and how
  bool complete = false;  ///< false: packing was interrupted, or is under way
  int64_t shards = 0, images = 0, bad_images = 0;
  uint64_t bytes = 0;  ///< total size of all archives
};

using PackManifest = std::map<std::string, PackedSplit>;  ///< by split

/// Nothing when the folder has no pack.json. Throws core::Error{data} when it cannot be understood.
std::optional<PackManifest> read_pack_manifest(const std::string& directory);
void write_pack_manifest(const std::string& directory, const PackManifest& manifest);

/// One name per line. Nothing when the folder has no classes.txt. Throws core::Error{data} for an empty or
/// repeated name.
std::optional<std::vector<std::string>> read_classes_file(const std::string& directory);
/// Throws core::Error{data} for names that a line cannot hold.
void write_classes_file(const std::string& directory, const std::vector<std::string>& class_names);

/// "train-000012.tar"
std::string shard_file_name(const std::string& split, int64_t number);
/// Paths of the shards of a split, sorted bytewise: `<split>.tar` and `<split>-<digit>*.tar`.
std::vector<std::string> shards_in(const std::string& directory, const std::string& split);
/// Paths of all archives of a folder, sorted bytewise.
std::vector<std::string> archives_in(const std::string& directory);

}  // namespace stoker::data
