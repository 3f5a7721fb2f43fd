// SPDX-License-Identifier: Apache-2.0
#include "data/pack/pack_keys.h"

#include <algorithm>
#include <vector>

#include "core/hash.h"
#include "data/shard/shard_name.h"

namespace stoker::data {
namespace {

using HashedSample = std::pair<uint64_t, int64_t>;

/// Calls `visit(index, rank)` for every sample whose hash earlier ones have, too; equal hashes are taken for
/// equal texts, which at worst gives a sample a longer key than it needs.
template <typename Visit>
void for_repeated(std::vector<HashedSample>& hashed, const Visit& visit) {
  std::sort(hashed.begin(), hashed.end());
  uint64_t rank = 0;
  for (size_t i = 1; i < hashed.size(); ++i) {
    rank = hashed[i].first == hashed[i - 1].first ? rank + 1 : 0;
    if (rank > 0) visit(hashed[i].second, rank);
  }
}

}  // namespace

PackKeys::PackKeys(const Source& source) : source_(source) {
  std::vector<HashedSample> hashed;
  hashed.reserve(static_cast<size_t>(source.size()));
  for (int64_t i = 0; i < source.size(); ++i) {
    const std::string name = source.relative_name(i);
    if (is_plain_name(name)) hashed.emplace_back(core::hash64(plain_key(name)), i);
  }
  for_repeated(hashed, [&](int64_t index, uint64_t) { clashing_.insert(index); });
  hashed.clear();
  for (int64_t i = 0; i < source.size(); ++i) hashed.emplace_back(core::hash64(source.relative_name(i)), i);
  for_repeated(hashed, [&](int64_t index, uint64_t rank) { copies_.emplace(index, rank); });
}

void PackKeys::name(int64_t index, ImageFormat format, std::string& key, std::string& extension) const {
  const std::string name = source_.relative_name(index);
  if (clashing_.count(index) == 0 && is_plain_name(name) && extension_fits(name, format)) {
    key = plain_key(name);
    extension = name.substr(name.rfind('.') + 1);
    return;
  }
  const auto copy = copies_.find(index);
  key = whole_key(name, copy == copies_.end() ? 0 : copy->second);
  extension = extension_of(format);
}

}  // namespace stoker::data
