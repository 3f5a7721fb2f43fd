// SPDX-License-Identifier: Apache-2.0
// Where the time of updates went, as text and as JSON. Independent of where they are shown.
#pragma once

#include <string>
#include <vector>

#include "core/text/json.h"
#include "engine/run/events.h"

namespace stoker::observe {

/// "12.3ms", "0.85ms", "1.2s", "35us": three digits.
std::string short_seconds_text(double seconds);
/// "step 12.3ms (95% 15.1ms, max 40.2ms)"; "" before the first update.
std::string step_text(const engine::StepTimings& times);
/// For people, one line each: the training thread, the device where there is one, the loader's samples. None
/// before the first update.
std::vector<std::string> time_lines(const engine::StepTimings& times);
/// "4 ranks: exchange 7% of the time, waiting for later ranks 2%, slowest rank 2 on node-b: 120ms of work, the others
/// 80ms (+50%)"; "" where a rank is alone.
std::string ranks_line(const std::vector<engine::RankTimes>& ranks);
/// Null where a rank is alone.
core::Json ranks_json(const std::vector<engine::RankTimes>& ranks);
/// With the names and units of docs/reference/run-directory.md.
core::Json time_json(const engine::StepTimings& times);

}  // namespace stoker::observe
