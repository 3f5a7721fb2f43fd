// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/loaded_model.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>

#include "core/log.h"
#include "core/system/machine.h"
#include "engine/device/device.h"
#include "engine/probe/memory_probe.h"
#include "engine/probe/probe_input.h"
#include "engine/task/task.h"
#include "plan/memory_plan.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"
#include "train/setup/loader_tuning.h"
#include "train/setup/network_file.h"
#include "train/setup/plan_run.h"
#include "train/setup/run_directory.h"
#include "train/setup/run_setup.h"

namespace stoker::train {
namespace {

/// Channels that the first convolution takes; 0: unknown.
int64_t input_channels(const std::vector<model::NamedTensor>& weights) {
  for (const model::NamedTensor& weight : weights) {
    if (weight.tensor.dim() == 4) return weight.tensor.size(1);  // [out, in, height, width]
  }
  return 0;
}

/// Facts about the data, where the checkpoint has none.
config::DataFacts facts_of_use(const LoadedModel& loaded) {
  config::DataFacts facts = evaluation_facts(*loaded.source, loaded.given->options.data,
                                             static_cast<int64_t>(loaded.saved.class_names.size()));
  const int64_t channels = input_channels(loaded.saved.weights);
  if (!facts.has_fixed_size && (channels == 1 || channels == 3)) facts.channels = channels;
  return facts;
}

/// The key of results.
void refuse_unequal_evaluations(const JoinedRanks& ranks, const LoadedModel& loaded) {
  const config::ResolvedOptions& options = loaded.options();
  std::vector<std::pair<std::string, std::string>> values;
  for (const config::TrainingOption& option : config::training_relevant_values(options)) {
    values.emplace_back("--" + option.name, option.value);
  }
  values.emplace_back("--val-batch-size", std::to_string(options.loader.val_batch_size));
  values.emplace_back("CPU threads inside one operation", std::to_string(options.device.threads));
  values.emplace_back("the data", loaded.source->fingerprint());
  values.emplace_back("the program", STOKER_VERSION " with " + engine::libtorch_text());
  ranks.refuse_differences(values);
}

}  // namespace

LoadedModel load_configuration(const config::CommandLine& line, const JoinedRanks& ranks, const NamedCheckpoint& named,
                               const std::function<void(config::Options& given)>& change) {
  LoadedModel loaded;
  const auto find = [&] { return engine::find_checkpoint(named.path, named.which); };
  loaded.given = std::make_unique<config::Configuration>();
  loaded.given->trains = false;
  deploy::ReadCheckpoint read =
      deploy::read_checkpoint(ranks.place().size == 1 ? engine::load_model_of(named.path, named.which)
                                                      : engine::load_saved_model(ranks.from_root(find)),
                              *loaded.given);
  loaded.saved = std::move(read.saved);
  loaded.record = std::move(read.record);
  config::parse_options(line, *loaded.given);
  use_network_file_of_run(loaded.saved.path, loaded.saved.extra, *loaded.given);
  if (change) change(loaded.given->options);
  loaded.settings.emplace(*loaded.given, share_of_machine(ranks.place()));
  return loaded;
}

namespace {

std::string shape_text(const data::SampleShape& shape) {
  return core::format("{} x {} x {}", shape.channels, shape.height, shape.width);
}

/// A network that was trained on numbers of one shape, as HDF5 files hold them, accepts no photographs, and the other
/// way round. One that was trained on pairs of frames sees nothing in place of the other view.
void refuse_other_samples(const LoadedModel& loaded) {
  if (!loaded.record) return;
  const config::Preprocessing& trained = *loaded.record;
  const data::SampleShape given = loaded.source->fixed_shape();
  const bool given_as_is = given.height > 0;
  const data::SampleShape shape = {0, trained.height, trained.width, trained.channels};
  if (trained.taken_as_is != given_as_is) {
    throw core::Error(core::ErrorKind::data,
                      trained.taken_as_is
                          ? core::format("this network was trained on samples of a fixed size, {}, but {} holds images",
                                         shape_text(shape), core::printable(loaded.source->name(0)))
                          : core::format("this network was trained on images, but {} holds samples of a fixed size, {}",
                                         core::printable(loaded.source->name(0)), shape_text(given)),
                      trained.taken_as_is ? "give HDF5 files, or multi-band TIFF files, with such samples"
                                          : "give images: JPEG, PNG, BMP, WebP, TIFF, GIF, PNM or JPEG 2000 files");
  }
  if (given_as_is && shape_text(shape) != shape_text(given)) {
    throw core::Error(
        core::ErrorKind::data,
        core::format("this network was trained on samples of {}, but {} has {} (channels x height x width)",
                     shape_text(shape), core::printable(loaded.source->name(0)), shape_text(given)),
        "give samples of the shape that it was trained on");
  }
  if (trained.views == given.views) return;
  throw core::Error(
      core::ErrorKind::data,
      core::format("this network was trained {} frames in high and low quality, the data are {}",
                   trained.views > 1 ? "on" : "without", given.views > 1 ? "such pairs" : "single frames"),
      trained.views > 1 ? "give videos with the folders hq and lq" : "give videos without the folders hq and lq");
}

/// Throws Error{out_of_memory}, with the largest batch that fits.
void require_memory(const EvaluationParts& parts, const plan::MemoryBudget& budget) {
  const auto plan_of = [&](int64_t batch) {
    config::ResolvedOptions options = parts.options;
    options.loader.val_batch_size = batch;
    return measure_evaluation(
        {options, parts.source, parts.model, parts.task, parts.device, parts.data_bytes, parts.most_side}, budget);
  };
  plan::require_evaluation_memory(plan_of, parts.options.loader.val_batch_size, budget, parts.options.run.plan_check);
}

/// Before anything is proven or tried at full size, which takes long of a batch that is far too large: whether it could
/// fit, from images of a small size.
void refuse_hopeless_batch(const LoadedModel& loaded, int64_t data_bytes, const plan::MemoryBudget& budget) {
  constexpr int64_t kSmallSide = 64;
  constexpr int64_t kHeldOverInput = 100;  // activations: a batch that fits with more is worth its trial
  const config::ResolvedOptions& options = loaded.options();
  const int64_t image = input_bytes(transform_plan(options, *loaded.source, /*training=*/false).shape);
  const int64_t images = std::min(options.loader.val_batch_size, loaded.source->size());
  const bool may_be_too_large = images * image > budget.host_free_bytes / kHeldOverInput;
  if (!options.run.plan_check || !loaded.device.is_cpu() || !may_be_too_large) return;
  const engine::ThreadCount one_thread(1);  // others may hold the CPUs
  const std::shared_ptr<model::ImageModel> tried = build_model(options, loaded.device);
  const std::unique_ptr<engine::Task> task = build_task(options, loaded.device);
  EvaluationParts parts = {options, *loaded.source, *tried, *task, loaded.device, data_bytes, kSmallSide};
  if (plan::shortage(plan::make_memory_plan(measure_evaluation(parts, budget)), budget).empty()) return;
  parts.most_side = 0;  // the advice is what the next start plans
  require_memory(parts, budget);
}

}  // namespace

void load_network(const OpenSource& open, const JoinedRanks& ranks, LoadedModel& loaded) {
  const config::ResolvedOptions& options = loaded.options();
  const int64_t resident_before = settled_resident_bytes();
  if (!ranks.is_root()) ranks.wait_for_all();  // errors in the data are reported once, by the root
  loaded.source = open(*loaded.given, loaded.saved.class_names);
  if (ranks.is_root()) ranks.wait_for_all();
  const int64_t data_bytes = std::max<int64_t>(0, settled_resident_bytes() - resident_before);
  refuse_other_samples(loaded);
  loaded.settings->settle(facts_of_use(loaded));
  refuse_unequal_evaluations(ranks, loaded);
  require_model_for(options, *loaded.source);
  loaded.device = open_and_configure_device(options);
  const plan::MemoryBudget budget = memory_budget(loaded.device, ranks.place().local_size);
  if (ranks.place().size == 1) refuse_hopeless_batch(loaded, data_bytes, budget);
  deploy::Network network =
      deploy::open_network(options, loaded.device, loaded.saved, evaluation_use(options, *loaded.source),
                           [&ranks](const std::function<std::string()>& find) { return ranks.from_root(find); });
  loaded.precision = network.precision;
  loaded.task = std::move(network.task);
  loaded.model = std::move(network.model);
  const plan::MemoryBudget left = memory_budget(loaded.device, ranks.place().local_size);
  require_memory({options, *loaded.source, *loaded.model, *loaded.task, loaded.device, data_bytes}, left);
}

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

/// Bytes of what is kept of each image until the end, for metrics and intervals, and of tables.
int64_t kept_result_bytes(const EvaluationParts& parts) {
  constexpr int64_t kOfLabel = 40, kOfClassified = 64;  // bytes of an image
  const config::TaskKind task = parts.options.data.task;
  const int64_t outputs = parts.task.num_outputs(), images = parts.source.size();
  return images * (task == config::TaskKind::multiclass ? kOfClassified : kOfLabel * outputs) +
         engine::table_bytes(task, outputs, images);
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
  const int64_t crops = config::crops_of(options.train.tta);
  inputs.pixel_bytes =
      crops * shape.bytes() + int64_t{sizeof(int64_t)} + parts.source.num_targets() * int64_t{sizeof(float)};
  inputs.input_bytes = crops * input_bytes(shape);
  inputs.data_bytes = parts.data_bytes;
  inputs.result_bytes = kept_result_bytes(parts);
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
  const double left_out = shrink_input(parts.most_side, settings);
  std::optional<core::MemoryLimit> limit;
  if (parts.device.is_cpu()) limit.emplace();
  try {
    engine::ActivationModel found =
        engine::probe_evaluation_memory(parts.model, parts.task, parts.device, settings, max_images);
    found.area_factor *= left_out;
    core::log_debug("memory of activations: tried with {} pixels in {:.2f} s", found.probe_side, found.seconds);
    return [found](int64_t images) { return found.evaluation_bytes(images); };
  } catch (const std::exception& error) {
    core::log_debug("activation memory is unknown: {}", engine::short_text_of(error));
    if (!engine::is_out_of_memory(error, engine::free_memory_share(parts.device))) return {};
  }
  // `tried` images or more did not fit. They count as more than there is, whatever this process gives back meanwhile.
  const int64_t tried = std::min<int64_t>(2, max_images);
  return [=](int64_t images) { return images < tried ? free / tried * images : held + free + 1; };
}

/// Bytes by images of a batch: its outputs.
std::function<int64_t(int64_t)> output_bytes(const EvaluationParts& parts) {
  constexpr int64_t kCopies = 4, kNumber = sizeof(float);  // as they are, softmax, sorted, on the host
  return [of = kCopies * kNumber * parts.task.num_outputs()](int64_t batch) { return of * batch; };
}

}  // namespace

plan::PlanInputs measure_evaluation(const EvaluationParts& parts, const plan::MemoryBudget& budget) {
  plan::PlanInputs inputs = known_sizes(parts);
  const auto add_outputs = [&] {
    inputs.evaluation_bytes = [of = inputs.evaluation_bytes, outputs = output_bytes(parts)](int64_t images) {
      return of(images) + outputs(images);
    };
  };
  const int64_t held = inputs.on_cpu() ? budget.host_held_bytes : budget.device_held_bytes;
  const int64_t free = inputs.on_cpu() ? budget.host_free_bytes : budget.device_free_bytes;
  const int64_t asked = std::min(inputs.val_batch_size, inputs.val_images);
  const bool may_matter = asked * inputs.input_bytes > free / max_times_input(parts.model, shape_of(parts).channels);
  add_outputs();
  if (!may_matter) return inputs;
  // Without what the network holds: no more of them can fit. Which do is known only once some have been tried.
  const int64_t images = std::min(asked, plan::largest_batch(inputs, budget, inputs.val_batch_size, /*margin=*/0));
  if (images == 0) return inputs;
  if (const auto bytes = probed_bytes(parts, images, held, free)) {
    inputs.evaluation_bytes = bytes;
    add_outputs();
  }
  return inputs;
}

}  // namespace stoker::train
