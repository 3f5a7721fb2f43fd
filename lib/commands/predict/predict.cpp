// SPDX-License-Identifier: Apache-2.0
// `train predict`: predictions of a checkpoint for images without labels.
#include "commands/predict/predict.h"

#include <ATen/Functions.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "commands/eval/evaluate_together.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "data/image/contact_sheet.h"
#include "data/storage/byte_reader.h"
#include "engine/task/heat_map.h"
#include "model/model.h"
#include "model/script/network_library.h"
#include "train/failure/result_output.h"
#include "train/setup/run_directory.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

struct ReaderLeft {};

/// From now on the classifier gives what it takes. Returns the number of its inputs.
int64_t reveal_features(LoadedModel& loaded) {
  const torch::NoGradGuard no_gradients;
  const std::string prefix = loaded.model->head_prefix();
  auto parameters = loaded.model->named_parameters();
  torch::Tensor* const weight = parameters.find(prefix + "weight");
  if (weight == nullptr || weight->dim() != 2 || model::is_network_file(loaded.options().model.model)) {
    throw Error(
        ErrorKind::config,
        format("--features: the last layer of {} is not known to be a classifier", loaded.options().model.model),
        "leave --features out");
  }
  const int64_t features = weight->size(1);
  weight->set_data(torch::eye(features, weight->options().requires_grad(false)));
  if (torch::Tensor* const bias = parameters.find(prefix + "bias")) {
    bias->set_data(torch::zeros({features}, bias->options().requires_grad(false)));
  }
  return features;
}

/// Pictures of the evidence for the best class or label, a few images at a time.
class HeatMaps {
 public:
  HeatMaps(LoadedModel& loaded, std::string folder) : loaded_(loaded), folder_(std::move(folder)) {
    const config::ResolvedDataOptions& data = loaded.options().data;
    const bool is_file = model::is_network_file(loaded.options().model.model);
    if (is_file || config::has_scaled_targets(data.task) || model::takes_clips(loaded.options().model.model)) {
      throw Error(ErrorKind::config,
                  is_file ? "--explain: the network comes from a file, whose maps are not known"
                          : "--explain is for classes and labels of single images",
                  "leave --explain out");
    }
    if (config::crops_of(loaded.options().train.tta) > 1) {
      throw Error(ErrorKind::config, "--explain is for one crop of an image, but --tta averages several",
                  "add --tta none");
    }
    core::make_directories(folder_);
  }

  void add(const data::Batch& batch) {
    constexpr int64_t kAtOnce = 8;
    for (int64_t begin = 0; begin < batch.image_count(); begin += kAtOnce) {
      const int64_t end = std::min(begin + kAtOnce, batch.image_count());
      const torch::Tensor pictures = pictures_of(batch.images.slice(0, begin, end).to(at::kFloat));
      for (int64_t i = 0; i < end - begin; ++i) {
        const torch::Tensor picture = pictures[i];
        std::vector<uint8_t> png;
        data::encode_png(picture.data_ptr<uint8_t>(), static_cast<int>(picture.size(1)),
                         static_cast<int>(picture.size(0)), 3, png);
        const int64_t sample = batch.samples[static_cast<size_t>(begin + i)];
        core::write_file_atomically(format("{}/{:06}_{}.png", folder_, sample, name_of(sample)),
                                    std::string(png.begin(), png.end()), /*durable=*/false);
      }
    }
  }

 private:
  /// Without folder and ending.
  std::string name_of(int64_t sample) const {
    constexpr size_t kLongest = 200;
    std::string name = std::filesystem::path(loaded_.source->relative_name(sample)).stem().string();
    std::replace(name.begin(), name.end(), '/', '_');
    return name.substr(0, kLongest);
  }

  torch::Tensor pictures_of(const torch::Tensor& images) {
    const torch::Tensor heat = engine::heat_of(*loaded_.model, images);
    if (!heat.defined()) throw Error(ErrorKind::config, "--explain: the network has no maps", "leave --explain out");
    const config::ResolvedDataOptions& data = loaded_.options().data;
    const auto per_channel = [](const std::vector<double>& values) {
      return torch::tensor(values, at::kFloat).view({1, -1, 1, 1});
    };
    return engine::under_heat(images.cpu() * per_channel(data.std) + per_channel(data.mean), heat);
  }

  LoadedModel& loaded_;
  const std::string folder_;
};

/// The rows of a table in the order of the samples: those that were left out stand between the others.
class Rows {
 public:
  Rows(const LoadedModel& loaded, ImageTable& table, bool has_features)
      : loaded_(loaded), table_(table), has_features_(has_features) {}

  void add(const data::Batch& batch, const torch::Tensor& outputs, const data::Loader& loader) {
    if (batch.samples.back() - next_ >= batch.image_count()) {
      // Some are missing in between: a batch is cut at each of them.
      const std::vector<data::BadSample> bad = loader.bad_samples();
      for (int64_t begin = 0, end = 0; begin < batch.image_count(); begin = end) {
        add_left_out(batch.samples[static_cast<size_t>(begin)], bad);
        for (end = begin + 1; end < batch.image_count() && follows(batch, end);) ++end;
        add_whole(batch, outputs, begin, end);
      }
      return;
    }
    add_whole(batch, outputs, 0, batch.image_count());
  }
  /// Up to sample `end`.
  void add_left_out(int64_t end, const std::vector<data::BadSample>& bad) {
    const auto before = [](const data::BadSample& of, int64_t sample) { return of.sample < sample; };
    for (; next_ < end; ++next_, ++left_out_) {
      const auto found = std::lower_bound(bad.begin(), bad.end(), next_, before);
      const bool is_known = found != bad.end() && found->sample == next_;
      const std::string name = loaded_.source->name(next_);
      table_.add_error(name, is_known ? data::reason_for(name, found->reason) : "was not read");
    }
  }
  int64_t left_out() const { return left_out_; }

 private:
  static bool follows(const data::Batch& batch, int64_t i) {
    return batch.samples[static_cast<size_t>(i)] == batch.samples[static_cast<size_t>(i - 1)] + 1;
  }
  void add_whole(const data::Batch& batch, const torch::Tensor& outputs, int64_t begin, int64_t end) {
    data::Batch part;
    part.labels = batch.labels.narrow(0, begin, end - begin);
    part.targets = batch.targets.narrow(0, begin, end - begin);
    part.samples.assign(batch.samples.begin() + begin, batch.samples.begin() + end);
    const torch::Tensor own = outputs.narrow(0, begin, end - begin);
    if (has_features_) {
      const torch::Tensor host = own.to(torch::kCPU, at::kFloat).contiguous();
      for (int64_t i = 0; i < host.size(0); ++i) {
        ImageResult result;
        result.path = loaded_.source->name(part.samples[static_cast<size_t>(i)]);
        result.outputs = host.data_ptr<float>() + i * host.size(1);
        table_.add(result);
      }
    } else {
      add_results(loaded_, part, own, table_);
    }
    next_ = part.samples.back() + 1;
  }

  const LoadedModel& loaded_;
  ImageTable& table_;
  const bool has_features_;
  int64_t next_ = 0, left_out_ = 0;
};

[[noreturn]] void refuse_explaining_together() {
  throw Error(ErrorKind::usage, "--explain goes with predictions of one process", "leave --features or --devices out");
}

/// Refuses flags that contradict each other, before a run is read.
void check_flags(const PredictFlags& flags) {
  if (!flags.explain.empty() && flags.features) refuse_explaining_together();
  if (flags.features && (flags.logits || flags.probabilities || flags.top_k > 1)) {
    throw Error(ErrorKind::usage, "--features are written instead of predictions",
                "leave --logits, --probabilities and --top-k out, or --features");
  }
  if (core::ends_with(flags.output, ".npy") || core::ends_with(flags.output, ".npz")) {
    throw Error(ErrorKind::usage, "--output writes CSV or JSON Lines, not NumPy's format",
                "give a name that ends with .csv; numpy.genfromtxt(FILE, delimiter=',', skip_header=1) reads it");
  }
}

Outcome predict_as_rank(const Context& context, const PredictFlags& flags, const JoinedRanks& ranks) {
  const config::Configuration& requested = context.configuration;
  using config::OnBadImage;
  int64_t allowed = 0;
  const auto skips_bad_images = [&](config::Options& given) {  // an image that cannot be read is a row
    if (requested.flags.print_config) return;
    config::DataOptions& data = given.data;  // of the run, where the command line has no other
    if (data.on_bad_image == OnBadImage::skip) allowed = data.max_bad;
    if (data.on_bad_image != OnBadImage::repair) data.on_bad_image = OnBadImage::skip;
    data.max_bad = config::kUnlimitedBad;
  };
  LoadedModel loaded = load_configuration(context.line, ranks, {flags.checkpoint, flags.which}, skips_bad_images);
  if (context.configuration.flags.print_config) return print_config(loaded);
  if (!flags.explain.empty() && ranks.place().size > 1) refuse_explaining_together();
  const config::TaskKind task = loaded.options().data.task;
  if (flags.top_k > 1 && task != config::TaskKind::multiclass) {
    throw Error(ErrorKind::usage,
                core::format("--top-k lists the most probable of several classes; this run learned {}",
                             config::task_name(task)),
                "leave it out: each row has the probability of each label, or each number");
  }
  if (flags.probabilities && config::has_scaled_targets(task)) {
    throw Error(ErrorKind::usage, core::format("--probabilities: {} has none", config::task_name(task)),
                "leave it out: each row has the predicted numbers");
  }
  if (ranks.place().size > 1 && std::count(flags.inputs.begin(), flags.inputs.end(), "-") > 0) {
    throw Error(ErrorKind::usage, "several processes cannot read one standard input", "give a list as @FILE");
  }
  refuse_output_over_input(flags.output, flags.inputs, {".csv", ".json", ".jsonl"});
  refuse_output_over_input(flags.output, files_of_run(loaded.saved.path), {});
  std::optional<ResultStream> output;  // one that cannot be written is an error before anything is computed
  if (ranks.is_root()) output.emplace(flags.output);
  const auto open = [&](const config::Configuration& given, const std::vector<std::string>& trained) {
    return open_inputs(flags.inputs, given.options.data, trained);
  };
  load_network(open, ranks, loaded);

  if (const double temperature = loaded.options().task.temperature; temperature != 1 && !flags.features) {
    core::log_info("calibrated: outputs are divided by a temperature of {:.4g} (preprocess.json)", temperature);
  }
  TableColumns columns;
  columns.errors = true;
  columns.logits = flags.logits;
  columns.top_k = flags.top_k;
  columns.probabilities = flags.probabilities;
  columns.json = flags.json || core::ends_with(flags.output, ".json") || core::ends_with(flags.output, ".jsonl");
  const std::unique_ptr<ImageTable> table =
      flags.features ? make_feature_table(reveal_features(loaded), columns) : image_table(loaded, columns);
  Rows rows(loaded, *table, flags.features);
  std::optional<HeatMaps> heat_maps;
  if (!flags.explain.empty()) heat_maps.emplace(loaded, flags.explain);
  const auto visit = [&](const data::Batch& batch, const torch::Tensor& outputs, const data::Loader& loader) {
    rows.add(batch, outputs, loader);
    if (heat_maps) heat_maps->add(batch);
    const std::string text = table->take_text();  // on other ranks it goes
    if (output && !output->write(text) && ranks.place().size == 1) throw ReaderLeft();
  };
  try {
    rows.add_left_out(loaded.source->size(), predict_together(ranks, loaded, visit));
  } catch (const ReaderLeft&) {  // predict ... | head: nobody waits for the other images
    return {core::kExitOk, "predicted", loaded.saved.state.updates, loaded.saved.path};
  }
  if (output) {
    output->write(table->take_text());
    output->finish();
    if (flags.output != "-") core::log_info("{} rows in {}", loaded.source->size(), flags.output);
  }
  const int64_t left_out = rows.left_out(), all = loaded.source->size();
  if (left_out < all && left_out <= allowed) {
    if (left_out > 0) core::log_warning("bad images left out: {}", left_out);
    return {core::kExitOk, "predicted", loaded.saved.state.updates, loaded.saved.path};
  }
  throw Error(ErrorKind::data,
              left_out == all
                  ? format("none of the {} images of {} could be read", all, core::printable(flags.inputs.front()))
                  : format("{} of {} images could not be read{}", left_out, all,
                           allowed > 0 ? format(", more than the {} of --on-bad-image skip,{}", allowed, allowed) : ""),
              "the last column of their rows, error, has the reason; the other rows are complete");
}

}  // namespace

Outcome predict(const Context& context, const PredictFlags& flags) {
  check_flags(flags);
  return evaluate_on_devices(context, [&](const JoinedRanks& ranks) { return predict_as_rank(context, flags, ranks); });
}

}  // namespace stoker::train
