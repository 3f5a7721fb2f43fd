// SPDX-License-Identifier: Apache-2.0
#include "train/setup/option_warnings.h"

#include <algorithm>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "train/setup/run_directory.h"

namespace stoker::train {
namespace {

using config::DatasetType;
using core::format;

/// The config.yaml of a run gives every option; one that equals the default requests nothing.
bool is_requested(const config::Row& row) {
  return row.origin.kind != config::Origin::Kind::built_in && row.origin.kind != config::Origin::Kind::preset &&
         row.render() != row.default_text;
}

/// Those of `options` that are requested and that only data of another kind would use.
template <typename... Fields>
void lint_unused_options(const config::Configuration& given, const char* what_data_are,
                         std::vector<std::string>& warnings, const Fields&... options) {
  const auto check = [&](const config::Row& row) {
    if (is_requested(row)) warnings.push_back(format("--{} has no effect: the data are {}", row.name, what_data_are));
  };
  (check(given.table.row_of(options)), ...);
}

/// A sentence on labels that no sample of the validation split has, or that all of them have; empty: there are none.
std::string absent_labels(const data::Source& val) {
  const std::vector<std::string>& names = val.target_names();
  std::vector<float> row(names.size());
  std::vector<int64_t> hits(names.size());
  for (int64_t i = 0; i < val.size(); ++i) {
    val.targets(i, row.data());
    for (size_t k = 0; k < row.size(); ++k) hits[k] += row[k] > 0.5F;
  }
  std::vector<std::string> absent;
  for (size_t k = 0; k < names.size(); ++k) {
    if (hits[k] == 0 || hits[k] == val.size()) absent.push_back(core::printable(names[k]));
  }
  if (absent.empty()) return "";
  constexpr size_t kNamed = 5;
  const size_t more = absent.size() > kNamed ? absent.size() - kNamed : 0;
  absent.resize(absent.size() - more);
  return format("no image of the validation split differs in {}{}: roc_auc averages over the other labels",
                core::list_text(absent), more > 0 ? format(" and {} more labels", more) : "");
}

/// A curve over thresholds needs samples with the label and samples without it. Where it is to choose the best
/// checkpoint, refuse_unfit_data() ends the run instead.
std::string metric_warning(const config::ResolvedOptions& options, const data::Source& val) {
  using M = config::EvalMetric;
  std::vector<std::string> undefined, constant;
  std::string problem;
  const std::vector<M>& of_task = config::eval_metrics_of(options.data.task);
  for (const M metric : {M::roc_auc, M::pr_auc, M::f1, M::recall, M::mcc, M::kappa, M::r2}) {
    const bool is_of_task = std::find(of_task.begin(), of_task.end(), metric) != of_task.end();
    const std::string found = is_of_task ? metric_problem(options.data.task, metric, val) : "";
    if (found.empty()) continue;
    if (metric == options.train.eval_metric) return "";
    const bool has_value = metric != M::roc_auc && metric != M::pr_auc;  // as scikit-learn has it
    (has_value ? constant : undefined).push_back(config::eval_metric_name(metric));
    problem = found;
  }
  if (problem.empty()) return options.data.task == config::TaskKind::multilabel ? absent_labels(val) : "";
  const auto are = [](const std::vector<std::string>& names, const char* what) {
    return names.empty() ? "" : format("{} {} {}", core::list_text(names), names.size() > 1 ? "are" : "is", what);
  };
  return format("{}{}{} on this validation split: {}", are(undefined, "undefined"),
                undefined.empty() || constant.empty() ? "" : ", ", are(constant, "always 0"), problem);
}

}  // namespace

std::string metric_problem(config::TaskKind task, config::EvalMetric metric, const data::Source& val) {
  using M = config::EvalMetric;
  const bool needs_both = metric == M::roc_auc || metric == M::mcc || metric == M::kappa;
  const bool needs_hits = needs_both || metric == M::pr_auc || metric == M::f1 || metric == M::recall;
  const bool has_labels = task == config::TaskKind::binary || task == config::TaskKind::multilabel;
  const bool needs_classes = task == config::TaskKind::multiclass && (metric == M::mcc || metric == M::kappa);
  if (metric != M::r2 && !(needs_hits && has_labels) && !needs_classes) return "";
  const auto targets = std::max<int64_t>(1, val.num_targets());
  std::vector<float> row(static_cast<size_t>(targets)), first(row);
  std::vector<int64_t> hits(static_cast<size_t>(targets));
  bool varies = false;
  for (int64_t i = 0; i < val.size(); ++i) {
    if (val.num_targets() == 0) row[0] = static_cast<float>(val.label(i));
    val.targets(i, row.data());
    if (i == 0) first = row;
    varies = varies || row != first;
    for (size_t k = 0; k < row.size(); ++k) hits[k] += row[k] > 0.5F;
  }
  if (metric == M::r2) return varies ? "" : "all its targets are the same";
  if (needs_classes) {
    if (varies || val.size() == 0) return "";
    return format("all its images are of class '{}'", core::printable(val.class_names()[static_cast<size_t>(row[0])]));
  }
  const auto has_hits = [](int64_t count) { return count > 0; };
  const auto has_both = [&](int64_t count) { return count > 0 && count < val.size(); };
  const bool is_defined =
      needs_both ? std::any_of(hits.begin(), hits.end(), has_both) : std::any_of(hits.begin(), hits.end(), has_hits);
  if (is_defined) return "";
  if (task == config::TaskKind::multilabel) {
    return needs_both ? "no label has both images with it and without it" : "no image has a label";
  }
  return format("all its images are of class '{}'", core::printable(val.class_names()[hits[0] > 0 ? 1 : 0]));
}

std::vector<std::string> lint_options(const config::Configuration& given, const config::ResolvedOptions& options,
                                      const config::DataFacts& facts, const data::Datasets& datasets) {
  std::vector<std::string> warnings;
  const auto is_large = [](double value) { return value > 1.5; };
  const auto& data = options.data;
  const config::DataOptions& requested = given.options.data;
  if (!facts.has_float_samples && (std::any_of(data.mean.begin(), data.mean.end(), is_large) ||
                                   std::any_of(data.std.begin(), data.std.end(), is_large))) {
    warnings.push_back("mean and std look like numbers of 0 to 255; pixels are numbers of 0 to 1 here: divide by 255");
  }
  if (!facts.has_videos) {
    lint_unused_options(given, "no videos", warnings, requested.clip_frames, requested.frame_sampling, requested.boxes);
  }
  if (datasets.type != DatasetType::csv) {
    lint_unused_options(given, "no CSV file", warnings, requested.csv_path, requested.csv_label,
                        requested.csv_delimiter);
  }
  if (datasets.type != DatasetType::hdf5) {
    lint_unused_options(given, "no HDF5 files", warnings, requested.hdf5_input);
  }
  if (datasets.train->excerpts() == nullptr) {
    const config::SoundOptions& sound = requested.sound;
    lint_unused_options(given, "no sounds", warnings, sound.sample_rate, sound.n_fft, sound.hop, sound.mels,
                        sound.mel_scale, sound.seconds);
  }
  if (datasets.type != DatasetType::biwi) lint_unused_options(given, "not BIWI's", warnings, requested.val_subjects);
  if (datasets.type != DatasetType::biwi && datasets.type != DatasetType::w300lp) {
    lint_unused_options(given, "neither BIWI's nor 300W-LP's", warnings, requested.face_margin);
  }
  if (!facts.has_fixed_size) {
    const config::AugmentOptions& augment = given.options.augment;
    for (const int64_t* const masks : {&augment.freq_masks, &augment.time_masks}) {
      if (*masks == 0) continue;
      warnings.push_back(format("--{} is for spectrograms, but the data are images", given.table.row_of(*masks).name));
    }
  }
  if (options.model.lora > 0 && options.model.init_from.empty()) {
    warnings.push_back(
        "--lora keeps weights as they begin, which is at random: --pretrained or --init-from names others");
  }
  if (options.loader.batch_size > facts.train_images) {
    warnings.push_back(format("--batch-size {} is more than the {} training samples: each update uses all of them",
                              options.loader.batch_size, facts.train_images));
  }
  if (options.model.fresh_head && options.model.init_from.empty()) {
    warnings.push_back("--fresh-head has no effect: without --init-from the whole network begins at random");
  }
  const std::string warning = datasets.has_validation ? metric_warning(options, *datasets.val) : "";
  if (!warning.empty()) warnings.push_back(warning);
  const auto [mean, deviation] = normalisation_beside(starting_weights(options.model.init_from));
  const size_t channels = data.mean.size();
  if (!mean.empty() &&
      (config::for_channels(mean, channels) != data.mean || config::for_channels(deviation, channels) != data.std)) {
    const auto list = [](const std::vector<double>& values) {
      std::string text;
      for (const double value : values) text += format("{}{:g}", text.empty() ? "" : ",", value);
      return text;
    };
    warnings.push_back(format("the weights of {} were trained with --mean {} --std {}, this run normalises otherwise",
                              core::printable(options.model.init_from), list(mean), list(deviation)));
  }
  return warnings;
}

}  // namespace stoker::train
