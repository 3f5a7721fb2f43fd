// SPDX-License-Identifier: Apache-2.0
// The predicted memory of a run, by line, from given sizes: arithmetic, words and JSON. Nothing here
// measures, allocates or prints.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/facts.h"
#include "config/options.h"
#include "core/text/json.h"
#include "engine/memory/allocation_trace.h"

namespace stoker::plan {

/// The inputs of a plan. Sizes are bytes.
struct PlanInputs {
  std::string device = "cpu";                  ///< "cpu" or "cuda:0"
  int64_t batch_size = 1, val_batch_size = 1;  ///< images
  bool val_batch_is_given = false;             ///< else it follows batch_size
  int64_t accumulation_steps = 1;
  int64_t num_workers = 0, prefetch_factor = 4;
  int64_t train_images = 0, val_images = 0;  ///< per epoch
  int64_t pixel_bytes = 0;                   ///< one image as the loader hands it over, with label and targets
  int64_t resident_bytes = 0;                ///< pixels of both splits that stay on the device
  bool page_locked = false;                  ///< batch buffers are; LibTorch 2 then takes powers of two
  int64_t input_bytes = 0;                   ///< one image as the network sees it
  int64_t scratch_bytes = 0;                 ///< scratch memory of one worker
  int64_t program_bytes = 0;                 ///< program and libraries, as they are resident
  int64_t data_bytes = 0;                    ///< list of the samples, and their pixels where the source holds them
  int64_t cache_bytes = 0;                   ///< caches of both splits when full
  int64_t result_bytes = 0;                  ///< counts and tables of an evaluation
  int64_t weight_bytes = 0;                  ///< parameters and buffers
  int64_t gradient_bytes = 0, optimizer_bytes = 0, average_bytes = 0;
  int64_t teacher_bytes = 0;        ///< parameters and buffers of a network whose outputs are learned
  int64_t buffer_bytes = 0;         ///< running statistics and the like, which are part of weight_bytes
  int64_t replicas = 1, ranks = 1;  ///< numbers of the run; this process computes replicas / ranks of them
  bool copies_to_save = false;      ///< checkpoints are written beside training, from a copy in host memory that stays
  int64_t largest_tensor_bytes = 0;
  int64_t highest_so_far_bytes = 0;  ///< that the process has held at once before this plan
  int64_t proof_bytes = 0;           ///< that this process and the one that proves the libraries hold, before training
  bool resumes = false;              ///< a checkpoint is read before training begins
  /// The memory of one batch of training and one of evaluation of `images` images: input, activations and, of training,
  /// gradients. Empty: not known.
  std::function<int64_t(int64_t images)> training_bytes, evaluation_bytes;
  /// On the CPU, where it is known: how far the memory grows that batches of such sizes are worked on in, their inputs
  /// not included; see engine/memory/activation_arena.
  std::function<int64_t(const engine::BatchSizes& images)> working_bytes;

  bool on_cpu() const { return device == "cpu"; }
};

struct PlanLine {
  std::string name;  ///< "batch buffers"
  int64_t bytes = 0;
  std::string detail;  ///< "5 x 256 and 5 x 256 images"
};

struct MemoryPlan {
  std::string device;  ///< whose memory `on_device` is; "cpu": the host holds everything
  std::vector<PlanLine> on_host;
  std::vector<PlanLine> on_device;
  int64_t host_bytes = 0, device_bytes = 0;  ///< highest at any moment
  int64_t checkpoint_bytes = 0;              ///< one on disk
};
MemoryPlan make_memory_plan(const PlanInputs& inputs);

/// The available memory. 0: unknown, and then nothing is refused.
struct MemoryBudget {
  int64_t host_held_bytes = 0;  ///< by this process now
  int64_t host_free_bytes = 0;  ///< additional memory available
  int64_t device_held_bytes = 0, device_free_bytes = 0, device_total_bytes = 0;
};
/// "" when the plan fits; else what is short, in one sentence.
std::string shortage(const MemoryPlan& plan, const MemoryBudget& budget);
/// The least change that fits with 5 % of what is free to spare, as flags: without a cache, the largest batch, fewer
/// workers, all of it. "" when there is none.
std::string largest_fitting_change(const PlanInputs& inputs, const MemoryBudget& budget);
/// The largest batch in [1, most] that leaves `margin` (a share) of what there is; 0 when not even one image
/// fits. Evaluation takes no larger batches than training then.
int64_t largest_batch(PlanInputs inputs, const MemoryBudget& budget, int64_t most, double margin);

/// For the banner: one line per memory.
std::vector<std::string> plan_summary(const MemoryPlan& plan, const MemoryBudget& budget);
/// For `train plan`: a table.
std::vector<std::string> plan_table(const MemoryPlan& plan, const MemoryBudget& budget);
/// {"host": {"bytes": ..., "free_bytes": ..., "lines": [{"name", "bytes", "detail"}]}, "device": ...,
/// "checkpoint_bytes": ...}
core::Json plan_json(const MemoryPlan& plan, const MemoryBudget& budget);

// Refuses runs that do not fit in memory.

/// Checkpoints on disk at once: those that pruning leaves, and the one that is written before it.
int64_t most_checkpoints(const config::ResolvedRunOptions& options);

/// Throws Error{out_of_memory} with the largest training that fits. `plan_check` false: it is a warning only.
void require_enough_memory(const PlanInputs& inputs, const MemoryBudget& budget, bool plan_check);
/// Throws Error{out_of_memory} with the largest evaluation batch whose own plan fits. `plan_of`: the plan with another
/// batch, measured. `plan_check` false: it is a warning only.
void require_evaluation_memory(const std::function<PlanInputs(int64_t batch)>& plan_of, int64_t batch,
                               const MemoryBudget& budget, bool plan_check);

// The batch that `auto` takes.

/// The inputs of the choice of a batch besides memory.
struct BatchRules {
  int64_t total_batch_size = 0;       ///< images that an update is to have; 0: as many as it gets
  bool val_batch_is_given = false;    ///< else evaluation has batches of the same size
  bool keeps_any_last_batch = false;  ///< the last batch of an epoch is trained on, whatever its size
};

/// The value of batch-size auto: the largest that fits with a margin, that divides total-batch-size where one
/// is given, and that is no larger than is useful (docs/how-to/fit-memory.md). Throws Error{out_of_memory}
/// when no image fits.
config::Measured<int64_t> choose_batch(const BatchRules& rules, PlanInputs inputs, const MemoryBudget& budget);

}  // namespace stoker::plan
