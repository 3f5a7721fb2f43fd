// SPDX-License-Identifier: Apache-2.0
// What the ranks of a run send each other for one sum, and how long that takes: arithmetic on bytes and rates. The
// order of the messages is that of engine/group/peers.
#pragma once

#include <cstdint>

namespace stoker::plan {

/// What carries bytes from one place to another, each way at the same time.
struct LinkSpeed {
  double bytes_per_second = 0;  ///< above 0
  double message_seconds = 0;   ///< that a message takes whatever its size
};

/// Where ranks run: the first `per_machine` of them on the first machine, and so on.
struct RankPlaces {
  int64_t ranks = 1;
  int64_t per_machine = 1;
};

struct ExchangeCost {
  double seconds = 0;
  double sent_bytes = 0;          ///< by the rank that sends most: 2 (ranks - 1) / ranks of the sum for powers of two
  double machine_sent_bytes = 0;  ///< to other machines, by all ranks of the machine that sends most
  int64_t messages = 0;           ///< one after the other
};

/// Of one sum of so many bytes over all ranks. `near`: between two ranks of a machine while all others exchange, too.
/// `far`: of one machine to all others. 0 ranks besides the first: nothing.
ExchangeCost exchange_cost(int64_t bytes, const RankPlaces& places, const LinkSpeed& near, const LinkSpeed& far);

}  // namespace stoker::plan
