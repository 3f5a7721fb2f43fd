// SPDX-License-Identifier: Apache-2.0
// The fixed cost of an update, for any batch: starting operations, memory of weights and gradients.
#pragma once

#include "engine/probe/probe_input.h"

namespace stoker::engine {

/// Seconds of forward and backward that do not depend on the number of images, for batches of `batch_size`: what is
/// left at none of a line through two numbers of images, the larger no more than the batch unless that is a tiny one.
/// On noise. Takes about `least_seconds`, or two passes over each. The learner is as before afterwards.
double overhead_seconds(Learner& learner, const Task& task, const ProbeSettings& settings, int64_t batch_size,
                        double least_seconds);

}  // namespace stoker::engine
