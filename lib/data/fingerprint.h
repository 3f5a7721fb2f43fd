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
    for (const std::string& name : class_names) add_text(name);
  }
  /// With its length, so that no two lists read the same.
  void add_text(std::string_view text) {
    hasher_.add(core::format("{}:", text.size()));
    hasher_.add(text);
  }
  void add_sample(std::string_view relative_name, int64_t size_bytes, int64_t label) {
    add_text(relative_name);
    hasher_.add(core::format("{} {}\n", size_bytes, label));
  }
  /// What is learned instead of a label: `values` [count], samples by targets.
  void add_targets(const std::vector<std::string>& names, const float* values, int64_t count) {
    for (const std::string& name : names) add_text(name);
    hasher_.add(values, static_cast<uint64_t>(count) * sizeof(float));
  }
  std::string hex() const { return hasher_.hex(); }

 private:
  core::Hasher hasher_;
};

}  // namespace stoker::data
