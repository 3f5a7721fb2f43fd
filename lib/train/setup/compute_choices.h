// SPDX-License-Identifier: Apache-2.0
// How a CPU is to compute: precision, layout of images in memory, number of threads; measured on the network that is
// trained. How it is measured: engine/probe/training_speed.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "config/options.h"
#include "deploy/inference/inference.h"
#include "engine/probe/probe_input.h"
#include "engine/run/events.h"
#include "engine/step/learner.h"
#include "engine/task/task.h"
#include "train/setup/settings.h"

namespace stoker::train {

using deploy::FromRoot;

/// The variant to try.
struct TriedRun {
  Settings& settings;
  engine::Learner& learner;  ///< as the settings have it now; the same afterwards, but for measure_layout()
  const engine::Task& task;
  std::function<engine::ProbeSettings()> noise;  ///< as the settings have it when it is called
  struct Variation {
    bool channels_last = true;
    bool only_tried = false;  ///< with any weights
  };
  /// Such a learner again, in this layout.
  std::function<engine::Learner(const Variation&)> build = {};
};

/// On a CPU: where amp is automatic and the network decides, settings learn how much faster it trains in bfloat16, so
/// that amp is decided afterwards. Where amp was requested, warns when training is slower with it. Takes some tenths of
/// a second. Returns what it measured: how many times as fast as in float32 the network trains in bfloat16. Throws
/// Error{unavailable} when amp was requested and cannot be computed here.
std::optional<double> measure_amp(const TriedRun& run, const FromRoot& from_root = {});

/// On a CPU, in the precision that was chosen: where channels-last is automatic, the processor is of a kind of which it
/// is not known to be right, and training is clearly faster without, settings learn it, and the learner is another one.
/// Where it was given and the other way is clearly faster, warns. Measures nothing where a second learner would take
/// too much memory, and for what continues from a checkpoint. Returns how many times as fast the other layout than that
/// of the learner trains, where that was given and measured.
std::optional<double> measure_layout(const TriedRun& run);

/// On a CPU: where threads are automatic and fewer than the CPUs are clearly faster, since a neighbour holds some or
/// since the network is small, settings get the number, and LibTorch uses it. Nothing for what continues
/// from a checkpoint and for several replicas, which have one thread each.
void measure_threads(const TriedRun& run);

// FLOPs of a run per image, and the peak FLOP/s of its devices: counted and measured before it starts.

/// `devices`: how many compute at the same time; each is taken to be as fast as this one. Takes one image through the
/// network and some hundredths of a second of measuring. What cannot be counted is 0.
engine::ComputeCost compute_cost(const config::ResolvedOptions& options, engine::Learner& learner,
                                 const engine::ProbeSettings& noise, int64_t devices);

/// "2.4 GFLOP an image, 7.1 in training; peak 310 GFLOP/s in bfloat16" (forward, measured); "" where not known.
std::string compute_text(const engine::ComputeCost& cost, const config::ResolvedOptions& options,
                         const std::string& one_item);

}  // namespace stoker::train
