// SPDX-License-Identifier: Apache-2.0
#include "plan/batch_choice.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"

namespace stoker::plan {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

// Beyond this many images at once a CPU computes no faster, and learning rates of usual recipes no longer hold.
constexpr int64_t kUsefulOnCpu = 64;
constexpr int64_t kUsefulOnDevice = 8192;
constexpr int64_t kUpdatesPerEpoch = 8;                  // an automatic batch leaves an epoch at least as many
constexpr double kCpuMargin = 0.2, kDeviceMargin = 0.1;  // of what is free: other processes, pieces between tensors

}  // namespace

config::Measured<int64_t> choose_batch(const BatchRules& rules, PlanInputs inputs, const MemoryBudget& budget) {
  const int64_t replicas = inputs.replicas;
  const int64_t total = rules.total_batch_size / replicas, images = inputs.train_images;
  int64_t most = inputs.on_cpu() ? kUsefulOnCpu : kUsefulOnDevice;
  if (total > 0) {
    most = std::min(most, total);
  } else {
    most = std::clamp<int64_t>(images / (kUpdatesPerEpoch * inputs.accumulation_steps * replicas), 1, most);
  }
  if (!rules.val_batch_is_given) inputs.val_batch_size = most;
  const double margin = inputs.on_cpu() ? kCpuMargin : kDeviceMargin;
  int64_t batch = largest_batch(inputs, budget, most, margin);
  if (batch == 0) {
    throw Error(ErrorKind::out_of_memory, "not even one image fits: " + shortage(make_memory_plan(inputs), budget),
                "choose a smaller --img-size or --model, or fewer --num-workers");
  }
  const bool is_capped = batch == most;
  if (total > 0) {
    while (total % batch != 0) --batch;
  } else {
    if (batch > 8) batch -= batch % 8;
    if (images % batch == 1 && batch > 2 && rules.keeps_any_last_batch) --batch;  // no last batch of one image
  }
  const MemoryPlan plan = make_memory_plan([&] {
    inputs.batch_size = batch;
    inputs.val_batch_size = std::min(inputs.val_batch_size, batch);
    return inputs;
  }());
  const int64_t bytes = inputs.on_cpu() ? plan.host_bytes : plan.device_bytes;
  const std::string why = !is_capped        ? format("the most that fits with {:.0f} % to spare", 100 * margin)
                          : inputs.on_cpu() ? "more is of no use on a CPU, or leaves an epoch few updates"
                                            : "more leaves an epoch few updates";
  return {batch, format("{}: {} in all", why, core::bytes_text(static_cast<double>(bytes)))};
}

}  // namespace stoker::plan
