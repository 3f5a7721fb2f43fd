// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/loaded_model.h"

#include "commands/eval/evaluation_plan.h"
#include "config/preprocess/preprocessing.h"
#include "engine/checkpoint/weights.h"
#include "engine/device/device.h"
#include "plan/refusals.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"
#include "train/setup/network_file.h"
#include "train/setup/plan_run.h"
#include "train/setup/rank_share.h"
#include "train/setup/run_directory.h"

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

/// What results depend on.
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
  const auto find = [&] { return find_checkpoint(named.path, named.which); };
  loaded.saved = engine::load_saved_model(ranks.from_root(find));
  loaded.given = std::make_unique<config::Configuration>();
  loaded.given->trains = false;
  config::read_run_config(loaded.saved.config_yaml, loaded.saved.path + "/config.yaml", *loaded.given);
  if (!loaded.saved.preprocess.is_null()) {
    const std::string file = loaded.saved.path + "/preprocess.json";
    const config::Preprocessing record = config::preprocessing_from_json(loaded.saved.preprocess, file);
    config::take_over(record, file, *loaded.given);
    loaded.saved.class_names = record.names;
  }
  config::parse_options(line, *loaded.given);
  use_network_file_of_run(loaded.saved.path, engine::read_manifest(loaded.saved.path).extra, *loaded.given);
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
  if (loaded.saved.preprocess.is_null()) return;
  const auto trained = config::preprocessing_from_json(loaded.saved.preprocess, loaded.saved.path);
  const data::SampleShape given = loaded.source->fixed_shape();
  const bool given_as_is = given.height > 0;
  const data::SampleShape shape = {0, trained.height, trained.width, trained.channels};
  if (trained.taken_as_is != given_as_is) {
    throw core::Error(
        core::ErrorKind::data,
        trained.taken_as_is
            ? core::format("this network was trained on samples of {} that stay as they are, but {} holds images",
                           shape_text(shape), core::printable(loaded.source->name(0)))
            : core::format("this network was trained on images, but {} is one of samples of {} that stay as they are",
                           core::printable(loaded.source->name(0)), shape_text(given)),
        trained.taken_as_is ? "give HDF5 files, or TIFF files of many bands, with such samples"
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
  loaded.precision = precision_of(options, loaded.device);
  loaded.task = build_task(options, loaded.device);
  prove_backend(options, evaluation_use(options, *loaded.source),
                [&ranks](const std::function<std::string()>& find) { return ranks.from_root(find); });
  loaded.model = build_model(options, loaded.device);
  engine::load_weights(*loaded.model, loaded.saved.weights, loaded.saved.path);
  const plan::MemoryBudget budget = memory_budget(loaded.device, ranks.place().local_size);
  const EvaluationParts parts = {options, *loaded.source, *loaded.model, *loaded.task, loaded.device, data_bytes};
  plan::refuse_evaluation_that_does_not_fit(measure_evaluation(parts, budget), budget, options.run.plan_check);
}

}  // namespace stoker::train
