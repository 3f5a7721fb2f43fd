// SPDX-License-Identifier: Apache-2.0
// How long a network trains on a batch of noise in different ways: in another precision, layout or number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/probe/pass_clock.h"
#include "engine/probe/probe_input.h"

namespace stoker::engine {

/// One way to train the same network.
struct TrainingWay {
  Learner* learner = nullptr;  ///< with weights in the layout of `settings`
  ProbeSettings settings;      ///< and the precision
  int64_t threads = 1;         ///< of the CPU
};

/// On a CPU: seconds of forward and backward on the same number of images, for each way; 0: this build or this CPU
/// cannot compute it. Of several passes the least by the thread's own time, the median by the wall's; in the order of
/// compared_seconds() (compared_passes.h). Large squares are tried smaller. Takes about `least_seconds` for each way,
/// half of that where it is clear whether one is `gain_that_counts` times as fast as the first, or two passes over 2
/// images where these are long. Learners and number of threads are as before afterwards. Throws
/// what the first way throws, core::StopRequested, and any error of memory that ran out.
std::vector<double> training_seconds(const std::vector<TrainingWay>& ways, const Task& task, PassClock clock,
                                     int64_t batch_size, double least_seconds, double gain_that_counts);

/// Seconds that pass in forward and backward on `images` images, the median of a few passes; on a CPU, with as many
/// threads as `way` has, whatever else keeps CPUs busy. Of noise. Takes about `least_seconds`, or one pass where that
/// is long. Learner and number of threads are as before afterwards. Throws as training_seconds().
double pass_seconds(const TrainingWay& way, const Task& task, int64_t images, double least_seconds);

}  // namespace stoker::engine
