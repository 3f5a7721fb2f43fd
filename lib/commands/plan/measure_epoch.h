// SPDX-License-Identifier: Apache-2.0
// How long an epoch takes, from some seconds of the training that is configured, its data included.
#pragma once

#include "config/options.h"
#include "engine/group/group.h"
#include "plan/device_plan.h"

namespace stoker::data {
struct Datasets;
}
namespace stoker::engine {
struct Learner;
class Task;
}  // namespace stoker::engine

namespace stoker::train {

/// Trains for some 8 seconds, or 3 epochs where these are shorter, and evaluates for 2 at most; the weights are others
/// afterwards. Throws core::StopRequested.
///
/// `group`: ranks that train together; all make this call and get about the same. Throws core::Error{peer_lost}.
plan::EpochEstimate measure_epoch(const config::ResolvedOptions& options, const data::Datasets& datasets,
                                  engine::Learner& learner, const engine::Task& task,
                                  engine::Group& group = engine::alone());

}  // namespace stoker::train
