// SPDX-License-Identifier: Apache-2.0
#include "train/setup/assemble.h"

#include <algorithm>

#include <cmath>
#include <filesystem>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/text/address.h"
#include "engine/device/device.h"
#include "engine/step/recompute.h"
#include "model/buffers.h"
#include "model/freeze.h"
#include "model/layers/batch_norm.h"
#include "model/low_rank.h"
#include "model/model.h"
#include "model/script/network_library.h"
#include "proof/standing.h"
#include "train/setup/network_file.h"
#include "train/setup/run_directory.h"
#include "train/setup/teacher.h"
#include "weights/load/pretrained.h"
#include "weights/names/known_weights.h"

namespace stoker::train {
namespace {

/// The memory of training per weight besides the weight: its gradient, the optimizer's state, the average.
void refuse_training_beyond_memory(const config::ResolvedOptions& options, const model::ImageModel& model) {
  const double copies = 1 + optimizer_copies(options.optim, model) + (options.optim.model_ema ? 1 : 0);
  const int64_t parameters = model::parameter_count(model);
  const int64_t needed = std::llround(4 * copies * static_cast<double>(parameters));  // float32
  const int64_t available = core::read_machine_facts().ram_available_bytes;
  if (available == 0 || needed <= available) return;
  throw core::Error(
      core::ErrorKind::out_of_memory,
      core::format("to train the {} parameters of {} takes {} besides the weights; {} of memory are free",
                   core::count_text(parameters), options.model.model, core::bytes_text(static_cast<double>(needed)),
                   core::bytes_text(static_cast<double>(available))),
      deploy::kSmallerModel);
}

/// The parameters that learn, some of them later. Each layer learns with `layer_decay` of the rate of the layer after
/// it (Clark et al. 2020, "ELECTRA"), all but the classifier with `backbone_lr` of that. Layers, and which parameters
/// decay, are timm's. What is frozen for a time is built thawed, which takes more memory and time; Updater freezes it.
std::vector<optim::NamedParameter> learning_parameters(model::ImageModel& model,
                                                       const config::ResolvedOptions& options) {
  const double layer_decay = options.optim.layer_decay, backbone_lr = options.optim.backbone_lr;
  const bool thaws = options.model.freeze_for.unit != config::Interval::Unit::never;
  std::vector<optim::NamedParameter> parameters;
  for (auto& item : model.named_parameters()) {
    const bool is_frozen = !item.value().requires_grad();
    if (is_frozen && !thaws) continue;
    item.value().set_requires_grad(true);
    const int64_t layers_after = layer_decay == 1 ? 0 : model.layer_count() - 1 - model.layer_of(item.key());
    const double share = backbone_lr != 1 && model.is_in_backbone(item.key()) ? backbone_lr : 1;
    parameters.push_back({item.key(), item.value(), share * std::pow(layer_decay, static_cast<double>(layers_after)),
                          model.decays(item.key()), is_frozen, !model.is_in_backbone(item.key())});
  }
  if (thaws) model::rest_frozen_norms(model);
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
  if (options.precision.prove_backend != config::ProveBackend::off) proof::apply_known_remedy();
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

double optimizer_copies(const config::ResolvedOptimOptions& options, const model::ImageModel& model) {
  double numbers = 0, states = 0;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const optim::NamedParameter parameter{
        item.key(), item.value(), 1, model.decays(item.key()), false, !model.is_in_backbone(item.key())};
    const auto count = static_cast<double>(item.value().numel());
    numbers += count;
    states += count * optim::states_of(parameter, options);
  }
  return numbers > 0 ? states / numbers : 0;
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

/// Options of batch norms that the network lacks are an error.
void set_up_norms(const model::ImageModel& model, const config::ResolvedModelOptions& options) {
  const auto norms = model::batch_norms_of(model);
  const char* const asked = options.sync_bn ? "--sync-bn" : options.precise_bn > 0 ? "--precise-bn" : "--bn-momentum";
  if (norms.empty() && (options.sync_bn || options.precise_bn > 0 || options.bn_momentum > 0)) {
    throw core::Error(core::ErrorKind::config,
                      core::format("{}: {} has no batch norm that is known here", asked, options.model),
                      core::format("leave {} out, or choose another --model", asked));
  }
  for (const auto& norm : norms) {
    if (options.bn_momentum > 0) norm->options.momentum(options.bn_momentum);
  }
}

/// Freezes parameters, and marks stages that are recomputed in the backward pass.
void prepare_to_learn(model::ImageModel& model, const config::ResolvedModelOptions& options) {
  const bool takes_backbone = options.freeze.empty() && options.freeze_for.unit != config::Interval::Unit::never;
  if (options.lora > 0) model::add_low_rank(model, options.lora, options.model);
  takes_backbone ? model::freeze_backbone(model) : model::freeze(model, options.freeze);
  set_up_norms(model, options);
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
  settings.space_check = options.run.space_check;
  settings.asynchronous = options.run.async_save;
  return settings;
}

/// Rows of a classifier of `outputs` by the names of classes; empty where the weights have no names. Outputs beyond the
/// names (--num-classes) keep theirs where all names are the same.
std::vector<int64_t> rows_by_name(const std::vector<std::string>& theirs, const std::vector<std::string>& ours,
                                  int64_t outputs) {
  std::vector<int64_t> rows;
  const auto more = std::max<int64_t>(0, outputs - static_cast<int64_t>(ours.size()));
  if (theirs.empty() || ours.empty()) return rows;
  for (const std::string& name : ours) {
    const auto found = std::find(theirs.begin(), theirs.end(), name);
    rows.push_back(found == theirs.end() ? -1 : found - theirs.begin());
  }
  for (int64_t i = 0; i < more; ++i) rows.push_back(theirs == ours ? static_cast<int64_t>(theirs.size()) + i : -1);
  return rows;
}

namespace {

/// Whether --init-from names weights, which are looked for, and not a place.
bool is_name_of_weights(const std::string& text, const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) return true;  // of several files
  static const std::vector<std::string> kEndings = {".pth", ".pt", ".bin", ".safetensors", ".ckpt", ".th", ".tar"};
  const bool ends_as_file = std::any_of(kEndings.begin(), kEndings.end(),
                                        [&](const std::string& ending) { return core::ends_with(text, ending); });
  if (ends_as_file && text.find('/') != std::string::npos) return false;  // not a repository of Hugging Face
  return !core::file_exists(file) && text[0] != '/' && text[0] != '.' && std::count(text.begin(), text.end(), '/') < 2;
}

/// The value of --init-from for `network`.
struct StartPlace {
  std::string name, file;  ///< the file that `name` is, or leads to
  bool is_by_name = false;
};

StartPlace start_place(const config::ResolvedModelOptions& options, const std::string& network) {
  const bool is_default = options.init_from == config::kDefaultWeights;
  StartPlace place;
  place.name = is_default ? network : options.init_from;
  place.file = starting_weights(place.name);
  place.is_by_name = is_default || is_name_of_weights(place.name, place.file);
  return place;
}

engine::StartingWeights load_starting_weights(model::ImageModel& model, const config::ResolvedModelOptions& options,
                                              const std::vector<std::string>& classes, int64_t outputs) {
  const bool is_file = model::is_network_file(options.model);  // weights come under the names that it has
  const std::string network = is_file ? "the network" : options.model;
  const std::string& usual = model.backbones().empty() ? network : options.backbone;
  const auto [name, file, is_by_name] = start_place(options, usual);
  weights::StartOptions start{options.fresh_head, options.init_norm_eps, options.same_padding, {}, 0};
  weights::LoadedWeights loaded;
  if (is_by_name) {
    loaded = weights::load_by_name(model, network, options.backbone, name, start);
  } else {
    const std::vector<std::string> theirs = classes_beside(file);
    start.head_rows = rows_by_name(theirs, classes, outputs);
    start.head_classes = static_cast<int64_t>(theirs.size());
    const weights::WeightFile opened = weights::open_weight_file(file);
    loaded = {file, opened.sha256(), weights::load_pretrained(model, network, options.backbone, opened, start)};
    const std::string mismatch = weights::mismatch_of_name(file, loaded.sha256);
    if (!mismatch.empty()) core::log_warning("{}: {}", core::printable(file), mismatch);
  }
  for (const std::string& line : loaded.report) core::log_info("starting weights: {}", line);
  return {loaded.file, loaded.sha256};
}

}  // namespace

void require_starting_weights(const config::ResolvedModelOptions& options) {
  if (options.init_from.empty()) return;
  const std::string& network = model::takes_clips(options.model) ? options.backbone : options.model;
  const StartPlace place = start_place(options, network);
  if (core::is_address(place.name)) {
    throw core::Error(core::ErrorKind::no_input,
                      core::format("{} is an address; weights are read from this machine", core::printable(place.name)),
                      core::copy_first(place.name) + "--init-from FILE");
  }
  if (place.is_by_name) return weights::require_local_weights(place.name, network);
  if (core::file_exists(place.file)) return;
  throw core::Error(core::ErrorKind::no_input,
                    core::format("cannot read {}: No such file or directory", core::printable(place.file)),
                    "--init-from names a file, a folder, a run, or weights as train list weights prints them");
}

engine::Learner build_learner(const config::ResolvedOptions& options, torch::Device device, bool resumes,
                              const std::vector<std::string>& classes) {
  require_one_copy_of_network(options);
  engine::Learner learner;
  learner.device = device;
  learner.teacher = open_teacher(options, device, classes);  // before the seed of the own network is set
  learner.model = build_model(options, device);
  if (device.is_cpu()) refuse_training_beyond_memory(options, *learner.model);
  if (!options.model.init_from.empty() && !resumes) {
    learner.started_from = load_starting_weights(*learner.model, options.model, classes, options.data.num_classes);
  }
  prepare_to_learn(*learner.model, options.model);
  // Those of a network from a file belong to LibTorch's module there.
  if (!model::is_network_file(options.model.model)) model::join_buffers(*learner.model);
  learner.optimizer = std::make_unique<optim::Optimizer>(learning_parameters(*learner.model, options), options.optim);
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
