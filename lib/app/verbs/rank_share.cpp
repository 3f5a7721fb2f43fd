// SPDX-License-Identifier: Apache-2.0
#include "app/verbs/rank_share.h"

#include <algorithm>
#include <cstdlib>

#include "app/setup/plan_devices.h"
#include "app/setup/settings.h"
#include "core/format.h"

namespace stoker::app {
namespace {

config::Measured<int64_t> least_of_all(engine::Group& group, const config::Measured<int64_t>& own) {
  const std::vector<std::string> all = group.gather(std::to_string(own.value));
  config::Measured<int64_t> least = own;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const int64_t value = std::atoll(all[rank].c_str());
    if (value < least.value) least = {value, core::format("the most that rank {} can take", rank)};
  }
  return least;
}

}  // namespace

core::MachineFacts share_of_machine(const RankPlace& place) {
  return machine_shared_by(machine_with_accelerators(), place.local_size);
}

RunShare share_of_run(const JoinedRanks& ranks) {
  RunShare share;
  share.ranks = ranks.place().size;
  share.processes = ranks.place().local_size;
  if (engine::Group* const group = engine::with_others(ranks.group())) {
    share.from_root = [&ranks](const std::function<std::string()>& find) { return ranks.from_root(find); };
    share.agree_on_batch = [group](const config::Measured<int64_t>& own) { return least_of_all(*group, own); };
  }
  return share;
}

}  // namespace stoker::app
