// SPDX-License-Identifier: Apache-2.0
// Updates that the loss scaler of float16 left out: what they mean for a run. Computes nothing.
#pragma once

#include <string>
#include <vector>

#include "commands/inspect/watched_update.h"

namespace stoker::train {

/// The first of the skipped updates at the end of `updates`, as an index; updates.size(): the last was not skipped.
size_t first_of_last_skips(const std::vector<WatchedUpdate>& updates);

/// Whether a smaller loss scale could have helped the last update, which was skipped.
bool scale_is_to_blame(const std::vector<WatchedUpdate>& updates);

/// Why the updates from `first` to the end were all skipped, in words.
std::string cause_of_skips(const std::vector<WatchedUpdate>& updates, size_t first);
/// What to do about it. `init_scale`: of the run.
std::string advice_about_skips(const std::vector<WatchedUpdate>& updates, double init_scale);

/// The last layer whose gradient is not finite: gradients are computed from there to the first.
std::string layer_that_overflows(const WatchedUpdate& update);

/// With a finite gradient norm for what was skipped: that of the update before it. So it stands out nowhere.
std::vector<WatchedUpdate> with_skips_passed_over(std::vector<WatchedUpdate> updates);

}  // namespace stoker::train
