// SPDX-License-Identifier: Apache-2.0
#include "app/setup/evaluation_plan.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "app/setup/assemble.h"
#include "app/setup/loader_tuning.h"
#include "app/setup/plan_run.h"
#include "core/log.h"
#include "core/system/memory_limit.h"
#include "engine/device/out_of_memory.h"
#include "engine/probe/memory_probe.h"

namespace stoker::app {
namespace {

/// Times its input that a network holds at most for it; seen: up to a hundred times, for images of one channel.
constexpr int64_t kMostTimesItsInput = 512;

data::SampleShape shape_of(const EvaluationParts& parts) {
  return transform_plan(parts.options, parts.source, /*training=*/false).shape;
}

plan::PlanInputs known_sizes(const EvaluationParts& parts) {
  const config::ResolvedOptions& options = parts.options;
  const data::SampleShape shape = shape_of(parts);
  plan::PlanInputs inputs;
  inputs.device = options.device.device;
  inputs.batch_size = inputs.val_batch_size = options.loader.val_batch_size;  // nothing is trained on
  inputs.num_workers = options.loader.num_workers;
  inputs.prefetch_factor = options.loader.prefetch_factor;
  inputs.val_images = parts.source.size();
  inputs.pixel_bytes = shape.bytes() + int64_t{sizeof(int64_t)} + parts.source.num_targets() * int64_t{sizeof(float)};
  inputs.input_bytes = shape.images() * shape.height * shape.width * shape.channels * int64_t{sizeof(float)};
  inputs.data_bytes = parts.data_bytes;
  inputs.weight_bytes = engine::state_bytes(parts.model);
  const int64_t on_host = inputs.on_cpu() ? inputs.weight_bytes : 0;
  inputs.program_bytes = std::max<int64_t>(0, settled_resident_bytes() - parts.data_bytes - on_host);
  inputs.evaluation_bytes = [bytes = inputs.input_bytes](int64_t images) { return images * bytes; };
  return inputs;
}

/// Nothing where the network cannot be tried this way: evaluation will say why.
std::optional<engine::ActivationModel> probed(const EvaluationParts& parts) {
  engine::ProbeSettings settings = probe_settings(parts.options, parts.source, parts.device);
  settings.input = network_input(shape_of(parts));
  std::optional<core::MemoryLimit> limit;
  if (parts.device.is_cpu()) limit.emplace();
  try {
    return engine::probe_evaluation_memory(parts.model, parts.task, parts.device, settings);
  } catch (const std::exception& error) {
    core::log_debug("activations are not known: {}", engine::short_text_of(error));
  }
  return std::nullopt;
}

}  // namespace

plan::PlanInputs measure_evaluation(const EvaluationParts& parts, const plan::MemoryBudget& room) {
  plan::PlanInputs inputs = known_sizes(parts);
  const int64_t images = std::min(inputs.val_batch_size, inputs.val_images);
  const int64_t free = inputs.on_cpu() ? room.host_free_bytes : room.device_free_bytes;
  const bool may_matter = images * inputs.input_bytes > free / kMostTimesItsInput;
  if (!may_matter || !plan::shortage(plan::make_memory_plan(inputs), room).empty()) return inputs;
  if (const auto activations = probed(parts)) {
    inputs.evaluation_bytes = [model = *activations](int64_t of) { return model.evaluation_bytes(of); };
    core::log_debug("memory of activations: tried with {} pixels in {:.2f} s", activations->probe_side,
                    activations->seconds);
  }
  return inputs;
}

}  // namespace stoker::app
