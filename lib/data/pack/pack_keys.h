// SPDX-License-Identifier: Apache-2.0
// Keys for all samples of a split, no two alike.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "data/image/decode.h"
#include "data/source.h"

namespace stoker::data {

class PackKeys {
 public:
  explicit PackKeys(const Source& source);

  /// Key and extension of sample `index` whose file has this format.
  void name(int64_t index, ImageFormat format, std::string& key, std::string& extension) const;

 private:
  const Source& source_;
  std::unordered_set<int64_t> clashing_;          ///< plain names whose key an earlier sample has
  std::unordered_map<int64_t, uint64_t> copies_;  ///< samples whose name earlier ones have: how many
};

}  // namespace stoker::data
