// SPDX-License-Identifier: Apache-2.0
#include "train/setup/plan_run.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/machine.h"
#include "engine/device/device.h"
#include "engine/memory/activation_arena.h"
#include "engine/probe/memory_probe.h"
#include "engine/step/state_snapshot.h"
#include "engine/step/teacher.h"
#include "proof/standing.h"
#include "train/setup/assemble.h"
#include "train/setup/loader_tuning.h"
#include "train/setup/teacher.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr double kGapsOfTheHeap = 1.25;  // where working memory is left to the C library; seen: up to that

int64_t largest_tensor_bytes(const model::ImageModel& model) {
  int64_t largest = 0;
  for (const model::NamedTensor& entry : model::state_of(model)) {
    largest = std::max(largest, static_cast<int64_t>(entry.tensor.nbytes()));
  }
  return largest;
}

int64_t buffer_bytes(const model::ImageModel& model) {
  int64_t bytes = 0;
  for (const torch::Tensor& buffer : model.buffers()) bytes += static_cast<int64_t>(buffer.nbytes());
  return bytes;
}

/// The parts of the plan that need no trial. Activations are at least the input and its gradient's worth.
plan::PlanInputs known_sizes(const PlanParts& parts) {
  const config::ResolvedOptions& options = parts.settings.options();
  const data::Source& train = *parts.datasets.train;
  const data::SampleShape shape = transform_plan(options, train, /*training=*/true).shape;
  plan::PlanInputs inputs;
  inputs.device = options.device.device;
  const bool batch_is_known = !parts.settings.resolution().waits_for_batch;
  const bool val_batch_is_known = batch_is_known || !parts.settings.was_automatic(options.loader.val_batch_size);
  if (batch_is_known) inputs.batch_size = options.loader.batch_size;
  inputs.val_batch_size = val_batch_is_known ? options.loader.val_batch_size : inputs.batch_size;
  inputs.val_batch_is_given = !parts.settings.was_automatic(options.loader.val_batch_size);
  inputs.accumulation_steps = options.train.accumulation_steps;
  inputs.num_workers = options.loader.num_workers;
  inputs.prefetch_factor = options.loader.prefetch_factor;
  inputs.train_images = train.size();
  inputs.val_images = parts.datasets.val->size();
  inputs.pixel_bytes = config::crops_of(options.train.tta) * shape.bytes() + int64_t{sizeof(int64_t)} +
                       train.num_targets() * int64_t{sizeof(float)};
  if (options.loader.feed == config::FeedKind::resident) {
    const int64_t border = 2 * options.augment.crop_padding;
    const int64_t padded = (shape.height + border) * (shape.width + border);
    inputs.resident_bytes =
        shape.channels * (train.size() * padded + parts.datasets.val->size() * shape.height * shape.width);
  }
  inputs.page_locked = options.loader.pin_memory && !inputs.on_cpu();
  inputs.input_bytes = input_bytes(shape);
  inputs.scratch_bytes = worker_scratch_bytes(*parts.settings.facts().data, train);
  constexpr int64_t kOrderBytes = 8;  // of an epoch and of the one before it
  inputs.proof_bytes = proof::standing().peak_bytes;
  inputs.data_bytes = parts.data_bytes + kOrderBytes * train.size();
  if (inputs.val_images > 0) {
    inputs.result_bytes = engine::table_bytes(options.data.task, parts.task.num_outputs(), inputs.val_images);
  }
  inputs.weight_bytes = engine::state_bytes(*parts.learner.model);
  inputs.gradient_bytes = engine::gradient_bytes(*parts.learner.model);
  inputs.optimizer_bytes =
      std::llround(static_cast<double>(inputs.gradient_bytes) * optimizer_copies(options.optim, *parts.learner.model));
  inputs.average_bytes = parts.learner.ema ? inputs.weight_bytes : 0;
  inputs.teacher_bytes = parts.learner.teacher ? engine::state_bytes(parts.learner.teacher->network()) : 0;
  (inputs.on_cpu() ? inputs.data_bytes : inputs.teacher_bytes) += kept_output_bytes(options, train);
  inputs.copies_to_save = options.run.async_save;
  inputs.largest_tensor_bytes = largest_tensor_bytes(*parts.learner.model);
  inputs.buffer_bytes = buffer_bytes(*parts.learner.model);
  inputs.replicas = options.train.replicas;
  inputs.ranks = parts.ranks;
  inputs.resumes = parts.resumes;
  inputs.training_bytes = [inputs](int64_t images) { return inputs.gradient_bytes + images * inputs.input_bytes; };
  inputs.evaluation_bytes = [inputs](int64_t images) { return images * inputs.input_bytes; };
  return inputs;
}

engine::ProbeSettings memory_probe_settings(const PlanParts& parts, const plan::MemoryBudget& budget) {
  engine::ProbeSettings settings =
      probe_settings(parts.settings.options(), *parts.datasets.train, parts.learner.device);
  settings.memory_bytes = parts.learner.device.is_cpu() ? budget.host_free_bytes : budget.device_free_bytes;
  return settings;
}

/// Nothing where the network cannot be tried this way: training reports the reason, or continues regardless on request.
std::optional<engine::ActivationModel> probed(const PlanParts& parts, const plan::MemoryBudget& budget) {
  std::optional<core::MemoryLimit> limit;
  if (parts.learner.device.is_cpu()) limit.emplace();
  try {
    engine::ProbeSettings settings = memory_probe_settings(parts, budget);
    const double left_out = shrink_input(parts.most_side, settings);
    engine::ActivationModel model = engine::probe_memory(parts.learner, parts.task, settings);
    model.area_factor *= left_out;
    return model;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::out_of_memory || parts.settings.options().run.plan_check) throw;
    core::log_warning("continuing (--no-plan-check) although {}", error.what());
  } catch (const c10::Error& error) {
    core::log_debug("activation memory is unknown: {}", engine::short_text_of(error));
  }
  return std::nullopt;
}

core::Json observed_json(const ObservedMemory& observed) {
  const auto or_null = [](int64_t bytes) { return bytes > 0 ? core::Json(bytes) : core::Json(nullptr); };
  return {{"host_bytes", observed.host_bytes},
          {"device_bytes", or_null(observed.device_bytes)},
          {"device_allocated_bytes", or_null(observed.device_allocated_bytes)}};
}

}  // namespace

std::vector<int64_t> network_input(const data::SampleShape& shape) {
  std::vector<int64_t> input = {shape.channels * shape.views, shape.height, shape.width};
  if (shape.frames > 0 || shape.views > 1) input.insert(input.begin(), shape.images() / shape.views);
  return input;
}

double shrink_input(int64_t most_side, engine::ProbeSettings& settings) {
  double factor = 1;
  for (size_t i = settings.input.size() - 2; most_side > 0 && i < settings.input.size(); ++i) {
    const int64_t side = std::min(settings.input[i], most_side);
    factor *= static_cast<double>(settings.input[i]) / static_cast<double>(side);
    settings.input[i] = side;
  }
  return factor;
}

int64_t input_bytes(const data::SampleShape& shape) {
  return shape.images() * shape.height * shape.width * shape.channels * int64_t{sizeof(float)};
}

engine::ProbeSettings probe_settings(const config::ResolvedOptions& options, const data::Source& train,
                                     torch::Device device) {
  engine::ProbeSettings settings;
  settings.update = update_settings(options, precision_of(options, device));
  settings.input = network_input(transform_plan(options, train, /*training=*/true).shape);
  settings.num_classes = options.data.num_classes;
  settings.channels_last = options.precision.channels_last;
  settings.mixes = options.augment.mixup_alpha > 0 || options.augment.cutmix_alpha > 0;
  settings.tta = options.train.tta;
  settings.accumulates =
      options.train.accumulation_steps * options.train.replicas > 1 || options.train.total_batch_size > 0;
  return settings;
}

void release_freed_memory() {
  ::malloc_trim(0);
  engine::trim_activation_arena();
}

int64_t settled_resident_bytes() {
  release_freed_memory();
  return core::read_process_memory().resident_bytes;
}

plan::MemoryBudget memory_budget(torch::Device device, int64_t processes) {
  plan::MemoryBudget budget;
  budget.host_held_bytes = core::read_process_memory().resident_bytes;
  budget.host_free_bytes = core::read_machine_facts().ram_available_bytes / processes;
  const engine::DeviceMemory memory = engine::device_memory(device);
  budget.device_held_bytes = memory.held_bytes;
  budget.device_free_bytes = memory.free_bytes;
  budget.device_total_bytes = memory.total_bytes;
  return budget;
}

plan::PlanInputs measure_plan(const PlanParts& parts) {
  plan::PlanInputs inputs = known_sizes(parts);
  const int64_t resident_before = settled_resident_bytes();
  const auto finish = [&](int64_t resident) {
    const int64_t on_host = inputs.on_cpu() ? inputs.weight_bytes + inputs.average_bytes + inputs.teacher_bytes : 0;
    inputs.program_bytes = std::max<int64_t>(0, resident - parts.data_bytes - on_host);
    inputs.highest_so_far_bytes = core::read_process_memory().peak_resident_bytes;
    return inputs;
  };
  const plan::MemoryBudget budget = memory_budget(parts.learner.device, parts.processes);
  finish(resident_before);
  if (!parts.computes) return inputs;
  const bool is_too_much = !plan::shortage(plan::make_memory_plan(inputs), budget).empty();
  if (is_too_much && plan::largest_fitting_change(inputs, budget).empty()) return inputs;  // whatever is changed
  if (const auto activations = probed(parts, budget)) {
    inputs.training_bytes = [model = *activations](int64_t images) { return model.training_bytes(images); };
    inputs.evaluation_bytes = [model = *activations](int64_t images) { return model.evaluation_bytes(images); };
    if (inputs.on_cpu()) {
      const double gaps = engine::install_activation_arena() ? 1 : kGapsOfTheHeap;
      inputs.working_bytes = [model = *activations, gaps](const engine::BatchSizes& sizes) {
        return std::llround(gaps * static_cast<double>(model.working_bytes(sizes)));
      };
    }
    core::log_debug("memory of activations: tried with {} pixels in {:.2f} s", activations->probe_side,
                    activations->seconds);
  }
  return finish(settled_resident_bytes());
}

plan::BatchRules batch_rules(const config::Resolution& resolution) {
  const config::ResolvedLoaderOptions& loader = resolution.options.loader;
  plan::BatchRules rules;
  rules.total_batch_size = resolution.options.train.total_batch_size;
  rules.val_batch_is_given = !resolution.was_automatic(loader.val_batch_size);
  rules.keeps_any_last_batch = !resolution.was_automatic(loader.drop_last) && !loader.drop_last;
  return rules;
}

bool trains_on_one_image(const config::ResolvedOptions& options, const data::Source& train, engine::Learner& learner) {
  const engine::ProbeSettings settings = probe_settings(options, train, learner.device);
  const engine::ScopedSnapshot undisturbed(learner);
  learner.model->train();
  const data::Batch one = engine::noise_batch(settings, /*images=*/1, engine::side_of(settings), learner.device);
  return engine::trains_on_one_image(*learner.model, one.images);
}

ObservedMemory observed_memory(torch::Device device) {
  const engine::DeviceMemory memory = engine::device_memory(device);
  const int64_t host_bytes = std::max(core::read_process_memory().peak_resident_bytes, proof::standing().peak_bytes);
  return {host_bytes, memory.peak_bytes, memory.peak_allocated_bytes};
}

void write_plan_file(const std::string& run_dir, const plan::MemoryPlan& plan, const plan::MemoryBudget& budget,
                     const std::optional<ObservedMemory>& observed) {
  const core::Json json = {{"predicted", plan::plan_json(plan, budget)},
                           {"observed", observed ? observed_json(*observed) : core::Json(nullptr)}};
  core::write_file_atomically(run_dir + "/plan.json", core::json_page(json), /*durable=*/false);
}

}  // namespace stoker::train
