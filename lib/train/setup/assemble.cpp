// SPDX-License-Identifier: Apache-2.0
#include "train/setup/assemble.h"

#include <algorithm>

#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "engine/device/device.h"
#include "engine/step/recompute.h"
#include "model/buffers.h"
#include "model/freeze.h"
#include "model/model.h"
#include "model/script/network_library.h"
#include "train/setup/network_file.h"
#include "train/setup/run_directory.h"
#include "weights/load/pretrained.h"

namespace stoker::train {
namespace {

/// The memory of training per weight besides the weight: its gradient, the optimizer's state, the average.
void refuse_training_beyond_memory(const config::ResolvedOptions& options, const model::ImageModel& model) {
  const int copies = 1 + optimizer_copies(options.optim) + (options.optim.model_ema ? 1 : 0);
  const int64_t parameters = model::parameter_count(model), needed = 4 * copies * parameters;  // float32
  const int64_t available = core::read_machine_facts().ram_available_bytes;
  if (available == 0 || needed <= available) return;
  throw core::Error(
      core::ErrorKind::out_of_memory,
      core::format("to train the {} parameters of {} takes {} besides the weights; {} of memory are free",
                   core::count_text(parameters), options.model.model, core::bytes_text(static_cast<double>(needed)),
                   core::bytes_text(static_cast<double>(available))),
      deploy::kSmallerModel);
}

/// The parameters that are not frozen. Each layer learns with `layer_decay` of the rate of the layer after it (Clark
/// et al. 2020, "ELECTRA"). Layers, and which parameters decay, are timm's.
std::vector<optim::NamedParameter> learning_parameters(const model::ImageModel& model, double layer_decay) {
  std::vector<optim::NamedParameter> parameters;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const int64_t layers_after = layer_decay == 1 ? 0 : model.layer_count() - 1 - model.layer_of(item.key());
    parameters.push_back(
        {item.key(), item.value(), std::pow(layer_decay, static_cast<double>(layers_after)), model.decays(item.key())});
  }
  return parameters;
}

}  // namespace

torch::Device open_and_configure_device(const config::ResolvedOptions& options) {
  engine::BackendSettings backend;
  backend.threads = options.device.threads;
  backend.other_threads = options.loader.num_workers;
  backend.tf32 = options.precision.tf32;
  backend.deterministic = options.train.deterministic;
  engine::configure_backends(backend);
  return engine::open_device(options.device.device);
}

std::string precision_text(const config::ResolvedOptions& options, const engine::Precision& precision) {
  std::string text = !precision.autocast            ? "float32"
                     : precision.dtype == at::kHalf ? "float16 autocast with loss scaling"
                                                    : "bfloat16 autocast";
  text += options.precision.channels_last ? ", channels-last" : ", channels-first";
  if (precision.device.is_cuda()) text += options.precision.tf32 ? ", TF32 on" : ", TF32 off";
  return text + ", " + core::counted(options.device.threads, "CPU thread");
}

int optimizer_copies(const config::ResolvedOptimOptions& options) {
  return options.opt != config::OptimizerKind::sgd ? 2 : options.momentum != 0 ? 1 : 0;
}

void require_model_for(const config::ResolvedOptions& options, const data::Source& source) {
  const data::SampleShape shape = source.fixed_shape();
  const std::string& name = options.model.model;
  if (shape.images() == 1 || model::takes_clips(name)) return;
  const bool pairs = shape.views > 1;
  const std::string what = pairs ? "frames in high and low quality" : core::format("clips of {} frames", shape.frames);
  const char* const other =
      pairs ? "all frames as single images with --dataset folder" : "a single frame of each video with --clip-frames 1";
  throw core::Error(core::ErrorKind::config, core::format("{} takes single images, but the data are {}", name, what),
                    core::format("choose --model two_stream_convlstm --backbone {}, or take {}", name, other));
}

namespace {

/// Freezes parameters, and marks stages that are recomputed in the backward pass.
void prepare_to_learn(model::ImageModel& model, const config::ResolvedModelOptions& options) {
  model::freeze(model, options.freeze);
  if (options.grad_checkpointing) model.set_stage_runner(engine::run_and_recompute);
}

}  // namespace

engine::RunLimits limits_of(const config::ResolvedOptions& options, double seconds_before) {
  const double seconds = options.train.max_time_seconds;
  return {options.train.epochs, options.train.max_updates, seconds > 0 ? seconds_before + seconds : 0,
          options.train.patience};
}

engine::Checkpoints::Settings checkpoint_settings(const config::ResolvedOptions& options,
                                                  const std::string& directory) {
  engine::Checkpoints::Settings settings;
  settings.directory = directory;
  settings.keep_last = options.run.keep_last;
  settings.keep_best = options.run.save_best;
  settings.lower_is_better = engine::lower_is_better(options.train.eval_metric);
  settings.space_check = options.run.space_check;
  settings.asynchronous = options.run.async_save;
  return settings;
}

/// Rows of a classifier by the names of classes; empty where they are the same, or the weights have no names.
std::vector<int64_t> rows_by_name(const std::vector<std::string>& theirs, const std::vector<std::string>& ours) {
  std::vector<int64_t> rows;
  if (theirs.empty() || ours.empty() || theirs == ours) return rows;
  for (const std::string& name : ours) {
    const auto found = std::find(theirs.begin(), theirs.end(), name);
    rows.push_back(found == theirs.end() ? -1 : found - theirs.begin());
  }
  const bool none = std::all_of(rows.begin(), rows.end(), [](int64_t row) { return row < 0; });
  return none && theirs.size() == ours.size() ? std::vector<int64_t>() : rows;
}

engine::Learner build_learner(const config::ResolvedOptions& options, torch::Device device, bool resumes,
                              const std::vector<std::string>& classes) {
  require_one_copy_of_network(options);
  engine::Learner learner;
  learner.device = device;
  learner.model = build_model(options, device);
  if (device.is_cpu()) refuse_training_beyond_memory(options, *learner.model);
  if (!options.model.init_from.empty() && !resumes) {
    const bool is_file = model::is_network_file(options.model.model);  // weights come under the names that it has
    const std::string weights = starting_weights(options.model.init_from);
    weights::StartOptions start{options.model.fresh_head, options.model.init_norm_eps, options.model.same_padding, {}};
    start.head_rows = rows_by_name(classes_beside(weights), classes);
    for (const std::string& line : weights::load_pretrained(
             *learner.model, is_file ? "the network" : options.model.model, options.model.backbone, weights, start)) {
      core::log_info("starting weights: {}", line);
    }
  }
  prepare_to_learn(*learner.model, options.model);
  // Those of a network from a file belong to LibTorch's module there.
  if (!model::is_network_file(options.model.model)) model::join_buffers(*learner.model);
  learner.optimizer =
      std::make_unique<optim::Optimizer>(learning_parameters(*learner.model, options.optim.layer_decay), options.optim);
  optim::GradScalerSettings scaling;
  scaling.enabled = options.precision.amp && options.precision.amp_dtype == config::AmpDtype::float16;
  scaling.init_scale = options.precision.init_scale;
  scaling.growth_interval = options.precision.scale_growth_interval;
  learner.scaler = std::make_unique<optim::GradScaler>(scaling, device);
  if (options.optim.model_ema) {
    learner.ema =
        std::make_unique<optim::Ema>(*learner.model, options.optim.model_ema_decay, options.optim.model_ema_warmup);
  }
  return learner;
}

}  // namespace stoker::train
