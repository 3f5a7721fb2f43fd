// SPDX-License-Identifier: Apache-2.0
#include "plan/exchange_cost.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace stoker::plan {
namespace {

/// One message by each rank that takes part in a step, all at the same time.
class Steps {
 public:
  Steps(const RankPlaces& places, const LinkSpeed& near, const LinkSpeed& far)
      : places_(places), near_(near), far_(far), sent_(static_cast<size_t>(places.ranks)) {}

  /// `peer_of` a rank: whom it sends to; -1: nobody.
  void add(double bytes, const std::function<int64_t(int64_t rank)>& peer_of) {
    std::vector<double> leaving(static_cast<size_t>((places_.ranks + places_.per_machine - 1) / places_.per_machine));
    bool is_near = false;
    for (int64_t rank = 0; rank < places_.ranks; ++rank) {
      const int64_t peer = peer_of(rank);
      if (peer < 0) continue;
      sent_[static_cast<size_t>(rank)] += bytes;
      const int64_t machine = rank / places_.per_machine;
      if (machine == peer / places_.per_machine) {
        is_near = true;
      } else {
        leaving[static_cast<size_t>(machine)] += bytes;
      }
    }
    const double most = *std::max_element(leaving.begin(), leaving.end());
    const double near = is_near ? near_.message_seconds + bytes / near_.bytes_per_second : 0;
    const double far = most > 0 ? far_.message_seconds + most / far_.bytes_per_second : 0;
    cost_.seconds += std::max(near, far);
    cost_.machine_sent_bytes += most;
    ++cost_.messages;
  }

  ExchangeCost cost() {
    cost_.sent_bytes = *std::max_element(sent_.begin(), sent_.end());
    return cost_;
  }

 private:
  const RankPlaces places_;
  const LinkSpeed near_, far_;
  std::vector<double> sent_;  ///< by rank
  ExchangeCost cost_;
};

}  // namespace

ExchangeCost exchange_cost(int64_t bytes, const RankPlaces& places, const LinkSpeed& near, const LinkSpeed& far) {
  if (places.ranks <= 1) return {};
  const auto all = static_cast<double>(bytes);
  int64_t half = 1;
  while (2 * half < places.ranks) half *= 2;
  Steps steps(places, near, far);
  const int64_t beyond = places.ranks - half;
  const bool is_power_of_two = beyond == half;
  if (!is_power_of_two) {
    steps.add(all, [&](int64_t rank) { return rank >= half ? rank - half : -1; });
  }
  const auto partner_at = [&](int64_t distance) {
    return [=](int64_t rank) { return rank < 2 * half && (is_power_of_two || rank < half) ? rank ^ distance : -1; };
  };
  const int64_t first = is_power_of_two ? half : half / 2;
  double part = all / 2;
  for (int64_t distance = first; distance > 0; distance /= 2, part /= 2) steps.add(part, partner_at(distance));
  for (int64_t distance = 1; distance <= first; distance *= 2) steps.add(part *= 2, partner_at(distance));
  if (!is_power_of_two) {
    steps.add(all, [&](int64_t rank) { return rank < beyond ? rank + half : -1; });
  }
  return steps.cost();
}

}  // namespace stoker::plan
