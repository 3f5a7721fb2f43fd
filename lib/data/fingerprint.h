// SPDX-License-Identifier: Apache-2.0
// The fingerprint of a list of image files: a digest over classes, names, sizes and labels in order. Loose
// files and the shards that hold the same files have the same one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/format.h"
#include "core/hash.h"

namespace stoker::data {

class ListFingerprint {
 public:
  explicit ListFingerprint(const std::vector<std::string>& class_names) {
    for (const std::string& name : class_names) add(name);
  }
  void add_sample(std::string_view relative_name, int64_t size_bytes, int64_t label) {
    add(relative_name);
    hasher_.add(core::format("{} {}\n", size_bytes, label));
  }
  /// Of what a list has besides classes: names of targets, their values, face boxes.
  void add(std::string_view text) {  // with its length, so that no two lists read the same
    hasher_.add(core::format("{}:", text.size()));
    hasher_.add(text);
  }
  void add_bytes(const void* data, uint64_t size) { hasher_.add(data, size); }
  std::string hex() const { return hasher_.hex(); }

 private:
  core::Hasher hasher_;
};

}  // namespace stoker::data
