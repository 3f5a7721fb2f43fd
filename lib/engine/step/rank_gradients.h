// SPDX-License-Identifier: Apache-2.0
// The gradients of one update over all ranks of a data-parallel run.
#pragma once

#include <cstdint>

#include "engine/group/group.h"
#include "optim/optimizer.h"

namespace stoker::engine {

/// Replaces the gradients of `optimizer` by their sums over all ranks; every rank then has the same bits. `images` of
/// this rank had a part in its gradients; returns how many had one on all ranks. A rank without images takes part with
/// zeros. A parameter that no rank has a gradient of stays without one. A rank that is alone is left as it is. Throws
/// core::Error{peer_lost}, {bug} when ranks train different networks.
int64_t sum_gradients(Group& group, const optim::Optimizer& optimizer, int64_t images);

}  // namespace stoker::engine
