// SPDX-License-Identifier: Apache-2.0
// The index of an archive, made by reading the archive once: for shards that came without one, and to check
// ours.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "data/shard/shard_index.h"
#include "data/storage/byte_reader.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

/// Reads labels as shards state them: whole numbers, or names of known classes.
class ShardLabels {
 public:
  /// Without class names every label must be a number.
  explicit ShardLabels(const std::vector<std::string>& class_names);
  /// Text of a `.cls` member. Returns "" or what is wrong.
  std::string read_text(std::string_view text, int32_t& label) const;
  /// Text of a `.json` member: its "label", or nothing (-1) when there is none. Returns "" or what is wrong.
  std::string read_json(const std::string& text, int32_t& label) const;

 private:
  std::unordered_map<std::string, int32_t> by_name_;
};

/// Groups neighbours that share a key into samples, as WebDataset does. A sample is an image (where there are
/// several: jpg before jpeg, png, webp, bmp) with the label of its `.cls`, else of its `.json`, else -1. What
/// is no part of a sample, and samples without an image, go to `notes`. Digests stay empty. Throws
/// core::Error{data} for archives and labels that are damaged, core::StopRequested.
ShardIndex scan_shard(const ByteReader& shard, const ShardLabels& labels, ScanNotes& notes);

/// XXH3-128 of all bytes. Throws core::Error, core::StopRequested.
std::string digest_of(const ByteReader& bytes);

}  // namespace stoker::data
