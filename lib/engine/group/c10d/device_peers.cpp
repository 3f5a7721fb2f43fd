// SPDX-License-Identifier: Apache-2.0
#include "engine/group/c10d/device_peers.h"

#include <map>

#include "core/format.h"

namespace stoker::engine {

std::string link_obstacle(const std::vector<std::string>& cards) {
  std::map<std::string, size_t> first_with;
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].empty()) return core::format("rank {} has no NCCL for its device", rank);
    if (cards[rank] == kCpuCard) return core::format("rank {} computes on the CPU", rank);
    const auto [other, is_new] = first_with.emplace(cards[rank], rank);
    if (!is_new) return core::format("ranks {} and {} are on the same card", other->second, rank);
  }
  return "";
}

}  // namespace stoker::engine
