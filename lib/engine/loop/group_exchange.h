// SPDX-License-Identifier: Apache-2.0
// Collective operations of the loop besides updates and decisions.
#pragma once

#include <vector>

#include "data/feed/device_feed.h"
#include "data/loader/loader.h"
#include "engine/device/precision.h"
#include "engine/group/group.h"
#include "engine/task/evaluate.h"

namespace stoker::engine {

/// The bad samples that any rank has met, each once, by sample. All ranks make this call. Throws
/// core::Error{peer_lost}.
std::vector<data::BadSample> bad_samples_of_all(const std::vector<data::BadSample>& own, Group& group);

/// Makes the loader of every rank count the bad samples of all, which are loaders of the same data. All ranks make this
/// call; returns how many there are. Throws core::Error{data} on all of them when that is more than --on-bad-image skip
/// allows; {peer_lost}.
int64_t share_bad_samples(data::Loader& loader, Group& group);

/// predict() by all ranks of a group: `feed` of each has the batches that are congruent to its rank modulo the number
/// of ranks. Every rank visits all batches in order, those of other ranks without their images, and counts the bad
/// samples of all. All ranks make this call. Throws core::StopRequested on all of them when any was requested to stop;
/// core::Error{data, peer_lost}. For a single rank it is predict(), which looks for a stop by itself.
void predict_sharded(Group& group, model::ImageModel& model, data::DeviceFeed& feed, const Precision& precision,
                     config::TestTimeAugmentation tta, const BatchVisitor& visit);

/// evaluate() by all ranks of a group, as predict_sharded().
EvalReport evaluate_sharded(Group& group, model::ImageModel& model, const Task& task, data::DeviceFeed& feed,
                            const Precision& precision, config::TestTimeAugmentation tta, const BatchVisitor& visit);

}  // namespace stoker::engine
