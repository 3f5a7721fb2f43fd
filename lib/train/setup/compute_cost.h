// SPDX-License-Identifier: Apache-2.0
// What a run computes for an image, and how fast its devices could: counted and measured before it starts.
#pragma once

#include <string>

#include "config/options.h"
#include "engine/probe/probe_input.h"
#include "engine/run/compute_cost.h"
#include "engine/step/learner.h"

namespace stoker::train {

/// `devices`: how many compute at the same time; each is taken to be as fast as this one. Takes one image through the
/// network and some hundredths of a second of measuring. What cannot be counted is 0.
engine::ComputeCost compute_cost(const config::ResolvedOptions& options, engine::Learner& learner,
                                 const engine::ProbeSettings& noise, int64_t devices);

/// "2.4 GFLOP an image, 7.1 in training; peak 310 GFLOP/s in bfloat16" (forward, measured); "" where not known.
std::string compute_text(const engine::ComputeCost& cost, const config::ResolvedOptions& options,
                         const std::string& one_item);

}  // namespace stoker::train
