// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/evaluation_plan.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>

#include "core/log.h"
#include "core/system/memory_limit.h"
#include "engine/device/device.h"
#include "engine/device/out_of_memory.h"
#include "engine/probe/memory_probe.h"
#include "engine/task/task.h"
#include "train/setup/assemble.h"
#include "train/setup/loader_tuning.h"
#include "train/setup/plan_run.h"

namespace stoker::train {
namespace {

/// Times its input that a network may hold for it: the widest maps that a convolution makes of the input, as if several
/// of them were there at once and in full size.
int64_t max_times_input(const model::ImageModel& model, int64_t in_channels) {
  constexpr int64_t kLeast = 512, kMapsAtOnce = 16;
  int64_t widest = 0;  // channels
  for (const torch::Tensor& parameter : model.parameters()) {
    if (parameter.dim() == 4) widest = std::max(widest, parameter.size(0));
  }
  return std::max(kLeast, kMapsAtOnce * widest / std::max<int64_t>(1, in_channels));
}

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

/// Bytes by number of images. Nothing where the network cannot be tried this way: evaluation reports the reason.
/// `max_images`: of a batch. `held`, `free`: bytes of the memory that they take.
std::function<int64_t(int64_t)> probed_bytes(const EvaluationParts& parts, int64_t max_images, int64_t held,
                                             int64_t free) {
  engine::ProbeSettings settings = probe_settings(parts.options, parts.source, parts.device);
  settings.input = network_input(shape_of(parts));
  std::optional<core::MemoryLimit> limit;
  if (parts.device.is_cpu()) limit.emplace();
  try {
    const engine::ActivationModel found =
        engine::probe_evaluation_memory(parts.model, parts.task, parts.device, settings, max_images);
    core::log_debug("memory of activations: tried with {} pixels in {:.2f} s", found.probe_side, found.seconds);
    return [found](int64_t images) { return found.evaluation_bytes(images); };
  } catch (const std::exception& error) {
    core::log_debug("activations are not known: {}", engine::short_text_of(error));
    if (!engine::is_out_of_memory(error, engine::free_memory_share(parts.device))) return {};
  }
  // `tried` images or more did not fit. They count as more than there is, whatever this process gives back meanwhile.
  const int64_t tried = std::min<int64_t>(2, max_images);
  return [=](int64_t images) { return images < tried ? free / tried * images : held + free + 1; };
}

/// Bytes by images of a batch: what is kept of each image until the end, for metrics, tables and intervals, and the
/// outputs of a batch.
std::function<int64_t(int64_t)> result_bytes(const EvaluationParts& parts) {
  const int64_t outputs = parts.task.num_outputs(), images = parts.source.size();
  constexpr int64_t kOutputCopies = 4, kNumber = sizeof(float);  // as they are, softmax, sorted, on the host
  constexpr int64_t kOfLabel = 40, kOfClassified = 64;           // bytes of an image
  const int64_t matrix = outputs <= engine::kMostInMatrix ? 3 * int64_t{sizeof(int64_t)} * outputs * outputs : 0;
  const int64_t kept = parts.options.data.task == config::TaskKind::multiclass ? kOfClassified * images + matrix
                                                                               : kOfLabel * images * outputs;
  return [=](int64_t batch) { return kOutputCopies * kNumber * batch * outputs + kept; };
}

}  // namespace

plan::PlanInputs measure_evaluation(const EvaluationParts& parts, const plan::MemoryBudget& budget) {
  plan::PlanInputs inputs = known_sizes(parts);
  const auto add_results = [&] {
    inputs.evaluation_bytes = [of = inputs.evaluation_bytes, results = result_bytes(parts)](int64_t images) {
      return of(images) + results(images);
    };
  };
  const int64_t images = std::min(inputs.val_batch_size, inputs.val_images);
  const int64_t held = inputs.on_cpu() ? budget.host_held_bytes : budget.device_held_bytes;
  const int64_t free = inputs.on_cpu() ? budget.host_free_bytes : budget.device_free_bytes;
  const bool may_matter = images * inputs.input_bytes > free / max_times_input(parts.model, shape_of(parts).channels);
  add_results();
  if (!may_matter || !plan::shortage(plan::make_memory_plan(inputs), budget).empty()) return inputs;
  if (const auto bytes = probed_bytes(parts, images, held, free)) {
    inputs.evaluation_bytes = bytes;
    add_results();
  }
  return inputs;
}

}  // namespace stoker::train
