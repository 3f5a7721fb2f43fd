// SPDX-License-Identifier: Apache-2.0
#include "deploy/inference/inference.h"

#include <torch/utils.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/machine.h"
#include "engine/device/device.h"
#include "engine/device/without_onednn.h"
#include "engine/saved/weights.h"
#include "model/model.h"
#include "model/script/network_library.h"
#include "proof/standing.h"

namespace stoker::deploy {
namespace {

/// Whether the type of amp comes from a file, or from a word that is copied from commands for GPUs.
bool is_written_for_gpus(const config::Configuration& given) {
  using Kind = config::Origin::Kind;
  const Kind dtype = given.table.row_of(given.options.precision.amp_dtype).origin.kind;
  const std::vector<config::Shorthand>& words = given.table.shorthands();
  return dtype == Kind::file || dtype == Kind::preset ||
         std::any_of(words.begin(), words.end(), [](const config::Shorthand& word) {
           return word.is_written_for_gpus && word.used.kind == Kind::flag;
         });
}

/// Whether who gave the number of epochs did not give the warm-up, and has the last word.
bool epochs_are_written_over_warmup(const config::Configuration& given) {
  using Kind = config::Origin::Kind;
  const config::Origin& epochs = given.table.row_of(given.options.train.epochs).origin;
  const config::Origin& warmup = given.table.row_of(given.options.schedule.warmup_epochs).origin;
  const auto file = [](const config::Origin& origin) { return origin.detail.substr(0, origin.detail.rfind(':')); };
  if (warmup.kind == Kind::built_in || warmup.kind == Kind::flag) return false;
  return epochs.kind > warmup.kind || (epochs.kind == warmup.kind && file(epochs) != file(warmup));
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::optional<config::Measured<int64_t>> requested_threads(const std::string& omp_num_threads, int cpus) {
  constexpr int64_t kMaxThreads = 1024;
  int64_t threads = 0;
  if (!config::read_integer(omp_num_threads, 1, kMaxThreads, threads).empty()) return std::nullopt;
  threads = std::min<int64_t>(threads, std::max(cpus, 1));
  return config::Measured<int64_t>{threads, "OMP_NUM_THREADS is " + omp_num_threads, config::ChoiceSource::environment};
}

config::Facts first_facts(const config::Configuration& given, core::MachineFacts machine) {
  config::Facts facts;
  facts.run_name = config::run_name_of(given.flags);
  const auto is_given = [&](const auto& field) {
    return given.table.row_of(field).origin.kind != config::Origin::Kind::built_in;
  };
  facts.names_model = is_given(given.options.model.model);
  facts.names_lr_base = is_given(given.options.optim.lr_base);
  facts.names_momentum = is_given(given.options.optim.momentum);
  facts.names_nesterov = is_given(given.options.optim.nesterov);
  facts.names_betas = is_given(given.options.optim.beta1);
  facts.names_eps = is_given(given.options.optim.eps);
  facts.warmup_may_give_way = epochs_are_written_over_warmup(given);
  facts.half_may_give_way = given.options.device.device.is_auto() && is_written_for_gpus(given);
  facts.machine = std::move(machine);
  const bool is_rank = facts.machine.local_ranks > 0;  // those who start ranks set the variable to 1, whatever is free
  if (!is_rank) facts.threads = requested_threads(environment("OMP_NUM_THREADS"), facts.machine.cpus);
  facts.shards_replicas = given.trains;
  return facts;
}

config::ModelFacts usual_rates_of(const config::ResolvedModelOptions& options) {
  const model::DropRates usual = model::usual_drop_rates(options.model);
  return {options.model, usual.drop_rate, usual.drop_path_rate};
}

config::Resolution settle(const config::Options& given, config::Facts& facts, config::DataFacts data) {
  facts.data = std::move(data);
  facts.model = usual_rates_of(config::resolve(given, facts).options.model);
  facts.batch_size = config::usual_batch(given, config::resolve(given, facts).options.train.replicas);
  facts.trains_on_one_image = false;
  return config::resolve(given, facts);
}

namespace {

/// Sizes decide how much memory a sample takes: those of the files beside it have to be those of its manifest.
void require_sizes_of_manifest(const engine::SavedModel& saved, const config::Configuration& given) {
  const auto trained = saved.extra.find("training_options");
  if (trained == saved.extra.end() || !trained->is_object()) return;
  const config::DataOptions& data = given.options.data;
  for (const config::Row* row : {&given.table.row_of(data.img_size), &given.table.row_of(data.in_chans),
                                 &given.table.row_of(data.num_classes), &given.table.row_of(data.clip_frames)}) {
    const auto text = trained->find(row->name);
    if (row->is_auto() || text == trained->end() || !text->is_string() || *text == row->render()) continue;
    throw core::Error(
        core::ErrorKind::data,
        core::format("{}: {} is {} in config.yaml and preprocess.json, but {} in manifest.json",
                     core::printable(saved.path), row->name, row->render(), core::printable(text->get<std::string>())),
        "all of them were written by this program: restore the checkpoint");
  }
}

}  // namespace

ReadCheckpoint read_checkpoint(engine::SavedModel saved, config::Configuration& given) {
  const std::string path = saved.path;
  ReadCheckpoint read{std::move(saved), std::nullopt};
  config::read_run_config(read.saved.config_yaml, path + "/config.yaml", given);
  if (read.saved.preprocess.is_null()) return read;
  const std::string file = path + "/preprocess.json";
  read.record = config::preprocessing_from_json(read.saved.preprocess, file);
  config::take_over(*read.record, file, given);
  require_sizes_of_manifest(read.saved, given);
  read.saved.class_names = read.record->names;
  return read;
}

engine::Precision precision_of(const config::ResolvedOptions& options, torch::Device device) {
  engine::Precision precision;
  precision.device = device;
  precision.autocast = options.precision.amp;
  if (precision.autocast) {
    precision.dtype = options.precision.amp_dtype == config::AmpDtype::float16 ? at::kHalf : at::kBFloat16;
  }
  return precision;
}

engine::TaskSpec task_spec(const config::ResolvedOptions& options) {
  engine::TaskSpec spec;
  spec.kind = options.data.task;
  spec.options = options.task;
  spec.label_smoothing = options.train.label_smoothing;
  spec.num_classes = options.data.num_classes;
  return spec;
}

std::unique_ptr<engine::Task> build_task(const config::ResolvedOptions& options, torch::Device device) {
  return engine::make_task(task_spec(options), device);
}

model::ModelSpec model_spec(const config::ResolvedOptions& options) {
  model::ModelSpec spec;
  spec.name = options.model.model;
  spec.in_chans = options.data.in_chans;
  spec.num_classes = build_task(options, torch::kCPU)->num_outputs();
  spec.img_size = options.data.img_size;
  spec.width = options.model.width;
  spec.backbone = options.model.backbone;
  spec.lstm_channels = options.model.lstm_channels;
  spec.drop_rate = options.model.drop_rate;
  spec.drop_path_rate = options.model.drop_path_rate;
  spec.zero_init_residual = options.model.zero_init_residual;
  spec.same_padding = options.model.same_padding;
  return spec;
}

namespace {

/// Too large a network is an error here, not a process that the kernel kills.
std::shared_ptr<model::ImageModel> make_model_that_fits(const model::ModelSpec& spec) {
  const core::MemoryLimit limit;
  const auto refuse = [&] {
    throw core::Error(core::ErrorKind::out_of_memory,
                      core::format("the weights of {} do not fit into the memory that is free", spec.name),
                      kSmallerModel);
  };
  try {
    return model::make_model(spec);
  } catch (const std::exception& error) {
    if (!engine::is_out_of_memory(error)) throw;
    refuse();
  }
  return nullptr;  // not reached
}

/// A network that halves its images often has no pixels left of small ones, and the error of LibTorch does not name the
/// cause. Larger images always fit. What HDF5 files hold has its own shape. Where the libraries are proven, it takes
/// its images; a try here would compute with libraries that nobody has checked, and die of one that crashes.
void require_images_large_enough(const config::ResolvedOptions& options) {
  constexpr int64_t kSideOfSmallImages = 64;  // pixels
  const config::ImageSize size = options.data.img_size;
  if (size.short_side() > kSideOfSmallImages || model::takes_clips(options.model.model)) return;
  if (options.data.dataset == config::DatasetType::hdf5) return;
  const torch::NoGradGuard no_gradients;
  const std::shared_ptr<model::ImageModel> model = build_model(options, torch::kCPU);
  model->eval();
  try {
    const engine::WithoutOnednn only_shapes;
    model->forward(torch::zeros({1, options.data.in_chans, size.height, size.width}));
  } catch (const c10::Error& error) {
    if (engine::is_out_of_memory(error)) throw;
    throw core::Error(core::ErrorKind::config,
                      core::format("{} cannot take images of {} x {} pixels: {}", options.model.model, size.height,
                                   size.width, engine::short_text_of(error)),
                      "choose a larger --img-size, or another --model");
  }
}

}  // namespace

std::shared_ptr<model::ImageModel> build_model(const config::ResolvedOptions& options, torch::Device device) {
  torch::manual_seed(options.train.seed);
  std::shared_ptr<model::ImageModel> model = make_model_that_fits(model_spec(options));
  model->to(device);
  if (options.precision.channels_last) model::to_channels_last(*model);
  return model;
}

data::DecodeLimits decode_limits(const config::DataOptions& data) {
  data::DecodeLimits limits;
  limits.max_megapixels = data.max_image_megapixels;
  limits.repair = data.on_bad_image == config::OnBadImage::repair;
  return limits;
}

data::DecodeLimits decode_limits(const config::ResolvedDataOptions& data) {
  data::DecodeLimits limits;
  limits.max_megapixels = data.max_image_megapixels;
  limits.repair = data.on_bad_image == config::OnBadImage::repair;
  if (data.input_range.size() == 2) limits.range = {data.input_range[0], data.input_range[1]};
  return limits;
}

namespace {

proof::Effort effort_of(const config::ResolvedOptions& options) {
  switch (options.precision.prove_backend) {
    case config::ProveBackend::off: return proof::Effort::off;
    case config::ProveBackend::automatic: return proof::Effort::automatic;
    case config::ProveBackend::full: return proof::Effort::full;
  }
  return proof::Effort::automatic;
}

std::vector<std::string> precisions_of(const config::ResolvedOptions& options, const NetworkUse& use) {
  const bool is_half = options.precision.amp_dtype == config::AmpDtype::float16;
  const std::string reduced = is_half ? "float16" : "bfloat16";
  if (use.tries_precisions && options.device.device == "cpu") return {"", reduced};
  return {options.precision.amp ? reduced : ""};
}

proof::Request request_of(const config::ResolvedOptions& options, const NetworkUse& use) {
  proof::Request request;
  request.network = model_spec(options);
  if (model::is_network_file(request.network.name) && model::trusts_network_files()) {
    request.network_digest = model::read_network_file(request.network.name).sha256;
  }
  const bool thaws = options.model.freeze_for.unit != config::Interval::Unit::never;
  if (!thaws) request.freeze = options.model.freeze;
  if (!use.training_batches.empty()) {  // else weights are merged
    request.low_rank = options.model.lora;
    request.teachers = use.teachers;
    request.teacher_digest = use.teacher_digest;
  }
  request.trusts_network_file = model::trusts_network_files();
  request.input = use.input;
  request.device = options.device.device;
  request.deterministic = options.train.deterministic;
  request.tf32 = options.precision.tf32;
  for (const std::string& precision : precisions_of(options, use)) {
    const auto add = [&](bool trains, int64_t images) {
      request.passes.push_back({trains, images, precision, options.precision.channels_last, options.device.threads});
    };
    for (const int64_t images : use.training_batches) add(true, images);
    for (const int64_t images : use.evaluation_batches) add(false, images);
  }
  return request;
}

}  // namespace

ProverPlace usual_prover() { return {core::find_beside_program("stoker-prove", "../libexec/stoker")}; }

void prove_backend(const config::ResolvedOptions& options, const NetworkUse& use, const FromRoot& from_root,
                   const ProverPlace& prover) {
  static bool has_computed = false;  // oneDNN reads the limit of its instruction set once
  bool is_root = false;
  const auto find = [&] {
    is_root = true;
    const proof::Effort effort = effort_of(options);
    const std::string device = engine::computing_text(torch::Device(options.device.device));
    proof::prove_and_apply(request_of(options, use), effort, prover.program, device,
                           prover.may_limit_isa && !has_computed);
    return proof::standing_json();
  };
  const std::string found = from_root ? from_root(find) : find();
  if (!is_root) proof::follow(found);
  has_computed = true;
  const bool is_unproven = !proof::standing().unproven.empty();
  if (is_root && (is_unproven || proof::standing().was_off)) require_images_large_enough(options);
  if (is_root && is_unproven) {
    core::log_warning("backend: the libraries are not proven: {}", proof::standing().unproven);
  }
  static std::string warned_of;
  const std::string warning = proof::warning_text(proof::standing());
  if (is_root && !warning.empty() && warning != warned_of) core::log_warning("backend: {}", warning);
  warned_of = warning;
}

Network open_network(const config::ResolvedOptions& options, torch::Device device, const engine::SavedModel& saved,
                     const NetworkUse& use, const FromRoot& from_root, const ProverPlace& prover) {
  Network network;
  network.precision = precision_of(options, device);
  network.task = build_task(options, device);
  network.model = build_model(options, device);
  engine::load_weights(*network.model, saved.weights, saved.path);  // before passes of a size that was never trained
  prove_backend(options, use, from_root, prover);
  return network;
}

}  // namespace stoker::deploy
