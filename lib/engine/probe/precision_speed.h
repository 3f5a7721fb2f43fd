// SPDX-License-Identifier: Apache-2.0
// How much faster a network trains in reduced precision, tried on noise. Knows nothing of what is chosen from it.
#pragma once

#include <cstdint>

#include "engine/probe/probe_input.h"

namespace stoker::engine {

/// On a CPU: seconds of forward and backward in float32 over those in `reduced`: 2 is twice as fast; 0: this build or
/// this CPU cannot compute it. The least of several passes of each, in turn, on so many images of noise that a pass
/// takes some time, `batch_size` or 2 at most; large squares are tried smaller. On one thread, whose own time counts,
/// so that neighbours do not change it. Takes about `least_seconds`, or one pass of each over 2 images where that is
/// long. Learner and number of threads are as before afterwards. Throws core::StopRequested, and what says that memory
/// ran out.
double precision_speed(Learner& learner, const Task& task, const ProbeSettings& settings, const Precision& reduced,
                       int64_t batch_size, double least_seconds);

}  // namespace stoker::engine
