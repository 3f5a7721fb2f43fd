// SPDX-License-Identifier: Apache-2.0
// From the parts of a run to its memory plan: what is measured for it, and what is observed at its end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/open_datasets.h"
#include "data/source.h"
#include "engine/probe/probe_input.h"
#include "engine/step/learner.h"
#include "engine/task/task.h"
#include "plan/memory_plan.h"
#include "train/setup/settings.h"

namespace stoker::train {

/// Resident memory of this process after the allocator has given back what it kept for later.
int64_t settled_resident_bytes();
/// To the kernel, which a process that frees much otherwise does not do: what comes next may be allocated elsewhere.
void release_freed_memory();

/// One image or clip as the network sees it: {3, 224, 224}, or {frames, 3, 224, 224}.
std::vector<int64_t> network_input(const data::SampleShape& shape);
/// Bytes of one, in float32.
int64_t input_bytes(const data::SampleShape& shape);
/// The input of trials of the network: the shape of the run's images, its precision and loss.
engine::ProbeSettings probe_settings(const config::ResolvedOptions& options, const data::Source& train,
                                     torch::Device device);
/// Makes images no larger than `most_side` pixels; 0: as they are. Returns the area that they had over what they have.
double shrink_input(int64_t most_side, engine::ProbeSettings& settings);

/// The inputs of a measured plan. All are known but batch-size and what follows from it.
struct PlanParts {
  const Settings& settings;
  const data::Datasets& datasets;
  engine::Learner& learner;
  const engine::Task& task;
  int64_t data_bytes = 0;  ///< that opening the data took
  bool resumes = false;
  int64_t ranks = 1;      ///< number of ranks of the run
  int64_t processes = 1;  ///< number of ranks on this machine, which share its memory
  int64_t most_side = 0;  ///< above 0: activations are tried on images of at most this side, and extended by area
  bool computes = true;   ///< else activations are left out
};

/// Sizes, and activations by trying a few images: some tenths of a second for a small network, a few seconds at most.
/// The learner is as before afterwards. Where a lower limit already shows that nothing can fit, nothing is tried.
/// The cache is left out. Throws Error{out_of_memory} when the network and two images do not fit, unless plan-check is
/// off.
plan::PlanInputs measure_plan(const PlanParts& parts);

/// For each of `processes` processes of a run, which are all there.
plan::MemoryBudget memory_budget(torch::Device device, int64_t processes = 1);

/// The inputs of an automatic batch-size besides memory.
plan::BatchRules batch_rules(const config::Resolution& resolution);

/// Tries it on an image of noise. The learner is as before afterwards.
bool trains_on_one_image(const config::ResolvedOptions& options, const data::Source& train, engine::Learner& learner);

/// Highest memory of this process, and of LibTorch on its device.
struct ObservedMemory {
  int64_t host_bytes = 0, device_bytes = 0;  ///< peaks; on a device with the pieces between tensors
  int64_t device_allocated_bytes = 0;        ///< without them: what the plan predicts
};
ObservedMemory observed_memory(torch::Device device);
/// plan.json of a run: predicted, and at its end observed.
void write_plan_file(const std::string& run_dir, const plan::MemoryPlan& plan, const plan::MemoryBudget& budget,
                     const std::optional<ObservedMemory>& observed);

}  // namespace stoker::train
