// SPDX-License-Identifier: Apache-2.0
// `train eval`: metrics of a checkpoint on labelled images, and their uncertainty.
#include "commands/eval/eval.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "commands/eval/certainty_output.h"
#include "commands/eval/evaluate_together.h"
#include "commands/eval/report_csv.h"
#include "commands/train/run_end.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "data/dataset/held_out.h"
#include "data/open_datasets.h"
#include "engine/files/checkpoint_files.h"
#include "engine/saved/saved_model.h"
#include "engine/task/evaluate.h"
#include "observe/observers/progress.h"
#include "statistics/certainty.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// The subject of each threshold: the labels, or class 1 of a binary task.
std::vector<std::string> label_names(const LoadedModel& loaded) {
  const std::vector<std::string> names = output_names(loaded);
  return loaded.options().data.task == config::TaskKind::binary ? std::vector<std::string>{names[1]} : names;
}

void require_same_classes(const data::Source& source, const std::vector<std::string>& trained) {
  const std::vector<std::string>& names = source.learned_names();
  if (names == trained) return;
  throw Error(
      ErrorKind::data,
      format("the {} of the data ({}) are not those of the model ({})",
             source.num_targets() > 0 ? "targets" : "classes", core::list_text(names), core::list_text(trained)),
      "evaluate on data with the same classes, in folders or labels of the same names");
}

/// The requested split, with the classes of the network.
std::shared_ptr<const data::Source> open_labelled(const EvalFlags& flags, const config::Configuration& given,
                                                  const std::vector<std::string>& trained) {
  const config::DataOptions& options = given.options.data;
  const std::string& split = flags.split;
  const std::string& named = flags.data;
  const bool is_named =
      !named.empty() || given.table.row_of(options.data_dir).origin.kind == config::Origin::Kind::flag;
  std::error_code ignored;
  const bool has_validation = options.val_split != config::kNoValidation;
  // --data-dir may be the run's own folder: of a run with validation data, what was held out is measured.
  const bool is_own =
      !is_named || (named.empty() ? has_validation : std::filesystem::equivalent(named, options.data_dir, ignored));
  if (!is_named && split.empty() && !has_validation) {
    throw Error(ErrorKind::no_input,
                "the run was trained without validation data (--val-split none): there is nothing to evaluate",
                format("name other data: train eval RUN DATA; --split {} measures what it was trained on",
                       core::printable(options.train_split)));
  }
  if (is_named || !data::holds_out(options)) {
    return data::open_labelled(options, named.empty() ? options.data_dir : named, split, trained,
                               is_own ? data::DataOf::run : data::DataOf::others);
  }
  auto source = split.empty() ? data::open_datasets(options).val : data::open_split(options, split);
  require_same_classes(*source, trained);
  return source;
}

/// Intervals and calibration of the evaluation, and its comparison with another.
struct Uncertainty {
  statistics::Certainty certainty;
  std::optional<statistics::Comparison> comparison;
  std::string against{};  ///< path of the checkpoint that was compared with
};

/// The run or checkpoint of --against, checked before anything is computed; nothing without it.
std::optional<LoadedModel> load_other(const Context& context, const EvalFlags& flags, const JoinedRanks& ranks,
                                      const LoadedModel& loaded) {
  if (flags.against.empty()) return std::nullopt;
  std::optional<LoadedModel> other = load_configuration(context.line, ranks, {flags.against, flags.which});
  if (other->options().data.task != loaded.options().data.task) {
    throw Error(ErrorKind::config,
                format("{} and {} have different tasks", core::printable(other->saved.path),
                       core::printable(loaded.saved.path)),
                "compare runs of the same --task");
  }
  return other;
}

/// Another network on the same samples.
statistics::EvaluatedSamples evaluated_by(const JoinedRanks& ranks, LoadedModel& other, const LoadedModel& loaded) {
  const auto same_source = [&](const config::Configuration&, const std::vector<std::string>& trained) {
    require_same_classes(*loaded.source, trained);
    return loaded.source;
  };
  load_network(same_source, ranks, other);
  engine::GatheredSamples gathered(task_spec(other.options()), *other.task);
  predict_together(ranks, other, [&](const data::Batch& batch, const torch::Tensor& outputs, const data::Loader&) {
    gathered.add(outputs, batch);
  });
  return gathered.samples();
}

/// All ranks make this call; the figures are computed on the root alone.
Uncertainty estimate_uncertainty(const EvalFlags& flags, const JoinedRanks& ranks, const LoadedModel& loaded,
                                 std::optional<LoadedModel>& other, const statistics::EvaluatedSamples& samples) {
  Uncertainty uncertainty;
  statistics::EvaluatedSamples others;
  if (other) {
    uncertainty.against = other->saved.path;
    others = evaluated_by(ranks, *other, loaded);
  }
  if (!ranks.is_root()) return uncertainty;
  statistics::BootstrapSettings settings;
  settings.resamples = flags.resamples;
  settings.seed = loaded.options().train.seed;
  settings.threads = core::read_machine_facts().cpus;
  uncertainty.certainty = statistics::certainty_of(samples, settings);
  if (other) uncertainty.comparison = statistics::compare(samples, others, settings);
  return uncertainty;
}

/// The outputs of the network as they are, of all classes: --calibrate is fitted to them.
class RawOutputs {
 public:
  explicit RawOutputs(const LoadedModel& loaded)
      : has_classes_(loaded.options().data.task == config::TaskKind::multiclass),
        gathered_(spec_of(loaded), *loaded.task) {}

  void add(const torch::Tensor& outputs, const data::Batch& batch) {
    gathered_.add(outputs, batch);
    if (!has_classes_) return;
    const torch::Tensor host = outputs.to(torch::kCPU, at::kFloat).contiguous();
    logits_.insert(logits_.end(), host.data_ptr<float>(), host.data_ptr<float>() + host.numel());
  }
  statistics::EvaluatedSamples samples() {
    statistics::EvaluatedSamples samples = gathered_.samples();
    if (has_classes_) samples.outputs = std::move(logits_);
    return samples;
  }

 private:
  /// As before any calibration, so that a second one finds the same.
  static engine::TaskSpec spec_of(const LoadedModel& loaded) {
    engine::TaskSpec spec = task_spec(loaded.options());
    const bool is_calibrated = spec.options.temperature != 1 || spec.options.threshold.size() > 1;
    spec.options.temperature = 1;
    if (is_calibrated) spec.options.threshold = {0.5};
    return spec;
  }

  const bool has_classes_;
  engine::GatheredSamples gathered_;
  std::vector<float> logits_;
};

/// Throws where --calibrate makes no sense. Returns the lock of the run whose checkpoint is changed; null: it is in
/// none.
std::unique_ptr<core::LockFile> prepare_calibration(const EvalFlags& flags, const LoadedModel& loaded) {
  constexpr int64_t kFewest = 10, kMostOutputs = int64_t{1} << 29;
  const config::ResolvedDataOptions& data = loaded.options().data;
  const int64_t images = loaded.source->size();
  const auto refuse = [](ErrorKind kind, const std::string& what, const std::string& hint) {
    throw Error(kind, "--calibrate: " + what, hint);
  };
  if (config::has_scaled_targets(data.task)) {
    refuse(ErrorKind::config, format("task {} has no probabilities", config::task_name(data.task)), "leave it out");
  }
  if (!loaded.record) {
    refuse(ErrorKind::data, format("{} has no preprocess.json: an older program wrote it", loaded.saved.path),
           "run the training command with one more --epochs: the next checkpoint has one");
  }
  if (flags.data.empty() && flags.split == data.train_split) {
    refuse(ErrorKind::usage,
           format("split '{}' was trained on: its probabilities look better than they are", flags.split),
           "leave --split out, or name data that the network has not seen");
  }
  if (images < kFewest) {
    refuse(ErrorKind::data, format("{} are too few", core::counted(images, "image")), "name a larger split");
  }
  if (images * loaded.task->num_outputs() > kMostOutputs) {
    refuse(ErrorKind::out_of_memory,
           format("{} outputs of {} images do not fit", loaded.task->num_outputs(), core::count_text(images)),
           "name data with fewer images");
  }
  std::error_code gone;
  const std::filesystem::path folder = std::filesystem::canonical(loaded.saved.path, gone).parent_path();
  if (gone) refuse(ErrorKind::run_dir_in_use, "the run is under way", "calibrate when the training has ended");
  if (folder.filename() != "checkpoints") return nullptr;
  auto lock = std::make_unique<core::LockFile>((folder.parent_path() / ".lock").string(), "run directory",
                                               "calibrate when the training has ended");
  engine::CheckpointFiles(folder.string()).prepare();
  return lock;
}

/// Fits, stores, and returns the figures.
core::Json calibrate(const LoadedModel& loaded, const statistics::EvaluatedSamples& raw) {
  const statistics::FitCheck check = statistics::check_fit(raw, loaded.options().train.seed);
  const statistics::ProbabilityFit fitted = statistics::fit_probabilities(raw);
  const statistics::ProbabilityFit fit = statistics::without_worse(fitted, check, raw);
  config::Preprocessing record = *loaded.record;
  record.temperature = fit.temperature;
  record.threshold = fit.threshold;
  engine::replace_in_checkpoint(loaded.saved.path, engine::kPreprocessFile, core::json_page(config::to_json(record)));
  const bool has_labels = raw.task != config::TaskKind::multiclass;
  core::log_info(
      "calibrated   temperature {:.4g}; held-out images: ECE {:.2f} -> {:.2f} points (perfectly calibrated: up to "
      "{:.2f}), loss {:.4f} -> {:.4f}{}",
      fitted.temperature, 100 * check.before.ece, 100 * check.after.ece, 100 * check.after.chance_ece,
      check.before.loss, check.after.loss,
      has_labels ? format(", f1 {:.4f} -> {:.4f}", check.before.f1, check.after.f1) : "");
  std::vector<std::string> stored;
  if (!check.loss_is_worse()) stored.emplace_back("temperature");
  if (has_labels && !check.f1_is_worse()) stored.emplace_back("thresholds");
  core::log_info("             fitted to {} images and judged on {} others; {}", check.fitted, check.judged,
                 stored.empty() ? "nothing is stored"
                                : format("stored in {}/{}: {}, fitted to all {}", core::printable(loaded.saved.path),
                                         engine::kPreprocessFile, core::list_text(stored), raw.count()));
  if (check.loss_is_worse()) {
    core::log_warning("the temperature makes held-out images worse and is not stored: use more images");
  }
  if (check.f1_is_worse()) {
    core::log_warning("the thresholds make held-out images worse and are not stored: use more images");
  }
  if (fit.is_lowest) core::log_warning("the temperature is at its limit: (nearly) all of these images are right");
  if (fit.is_highest) {
    core::log_warning("the temperature is at its limit: the outputs are unrelated to what is true of these images");
  }
  const auto figures = [&](const statistics::FitCheck::Figures& of) {
    core::Json json = {{"ece", of.ece}, {"chance_ece", of.chance_ece}, {"loss", of.loss}};
    if (has_labels) json["f1"] = of.f1;
    return json;
  };
  core::Json json = {{"temperature", fit.temperature},  {"fitted_temperature", fitted.temperature},
                     {"fitted", check.fitted},          {"judged", check.judged},
                     {"before", figures(check.before)}, {"after", figures(check.after)}};
  if (has_labels) json["threshold"] = fit.threshold;
  return json;
}

core::Json figures_json(const LoadedModel& loaded, const Uncertainty& uncertainty) {
  core::Json json = certainty_json(uncertainty.certainty, label_names(loaded));
  json["checkpoint"] = core::printable(loaded.saved.path);
  json["against"] =
      uncertainty.comparison ? comparison_json(*uncertainty.comparison, uncertainty.against) : core::Json(nullptr);
  return json;
}

/// Which labels some sample has.
std::vector<bool> labels_there(const data::Source& source) {
  std::vector<float> row(static_cast<size_t>(source.num_targets()));
  std::vector<bool> is_there(row.size(), false);
  for (int64_t i = 0; i < source.size(); ++i) {
    source.targets(i, row.data());
    for (size_t k = 0; k < row.size(); ++k) is_there[k] = is_there[k] || row[k] > 0.5F;
  }
  return is_there;
}

std::vector<bool> classes_there(const data::Source& source, size_t classes) {
  std::vector<bool> is_there(classes, false);
  for (int64_t i = 0; i < source.size(); ++i) is_there[static_cast<size_t>(source.label(i))] = true;
  return is_there;
}

/// Averages over classes count one without samples as 0, as scikit-learn does for a given list of labels; areas of a
/// label without samples are not defined and left out.
void log_absent_classes(const LoadedModel& loaded) {
  const data::Source& source = *loaded.source;
  const bool has_labels = loaded.options().data.task == config::TaskKind::multilabel;
  if (source.num_targets() > 0 && !has_labels) return;
  const std::vector<bool> is_there =
      has_labels ? labels_there(source) : classes_there(source, loaded.saved.class_names.size());
  const auto absent = std::count(is_there.begin(), is_there.end(), false);
  if (absent == 0) return;
  core::log_info("note      {} of {} {}", absent, is_there.size(),
                 has_labels
                     ? "labels without samples here: pr_auc and roc_auc are averages over the others; precision, "
                       "recall and f1 count these as 0"
                     : "classes without samples here: precision, recall and f1 are averages over all classes "
                       "and count these as 0");
}

void log_figures(const EvalFlags& flags, const LoadedModel& loaded, const engine::EvalReport& report,
                 const Uncertainty& uncertainty) {
  core::log_info("checkpoint {} (epoch {})", loaded.saved.path, loaded.saved.state.epoch);
  std::string figures =
      format("{} {}  loss {:.4f}", data::sample_noun(*loaded.source).several, report.images, report.loss);
  for (const engine::Metric& metric : report.metrics) {
    if (!observe::is_trivial(metric.name, metric.value)) figures += "  " + observe::metric_text(metric, 2);
  }
  core::log_info("{}", figures);
  log_absent_classes(loaded);
  if (uncertainty.certainty.settings.resamples > 0) {
    for (const std::string& line : certainty_lines(uncertainty.certainty, report, label_names(loaded))) {
      core::log_info("{}", line);
    }
  }
  if (!uncertainty.comparison) return;
  for (const std::string& line : comparison_lines(*uncertainty.comparison, report, core::printable(flags.checkpoint),
                                                  core::printable(flags.against))) {
    core::log_info("{}", line);
  }
}

/// Whether `folder` is where the report of the run looks for an evaluation.
bool belongs_to_report(const std::string& folder, const std::string& run) {
  std::error_code error;
  const auto whole = [&](const std::string& path) { return std::filesystem::weakly_canonical(path, error); };
  return whole(folder) == whole(run + "/eval") && !error;
}

/// Everything as files of a folder.
void write_figures(const EvalFlags& flags, const LoadedModel& loaded, const engine::EvalReport& report,
                   const core::Json& figures, const Uncertainty& uncertainty,
                   const statistics::EvaluatedSamples& samples, const ImageTable& images) {
  const std::string& folder = flags.output;
  core::make_directories(folder);
  std::string written;
  const auto write = [&](const std::string& name, const std::string& content) {
    write_result(folder + "/" + name, content);
    written += (written.empty() ? "" : ", ") + folder + "/" + name;
  };
  write("images.csv", images.text());
  for (const engine::ResultTable& result : report.tables) write(result.name + ".csv", table_csv(result));
  write("certainty.json", core::json_page(figures));
  write("curves.json", core::json_line(curves_json(samples, label_names(loaded))) + "\n");
  if (uncertainty.certainty.calibration) write("reliability.csv", reliability_csv(*uncertainty.certainty.calibration));
  core::log_info("written: {}", written);
  if (belongs_to_report(folder, flags.checkpoint)) write_report_or_warn(flags.checkpoint);
}

Outcome evaluate_as_rank(const Context& context, const EvalFlags& flags, const JoinedRanks& ranks) {
  LoadedModel loaded = load_configuration(context.line, ranks, {flags.checkpoint, flags.which});
  const config::ResolvedOptions& options = loaded.options();
  if (context.configuration.flags.print_config) return print_config(loaded);
  std::optional<LoadedModel> other = load_other(context, flags, ranks, loaded);
  const auto open = [&](const config::Configuration& given, const std::vector<std::string>& trained) {
    auto source = open_labelled(flags, given, trained);
    if (other) require_same_classes(*source, other->saved.class_names);
    return source;
  };
  load_network(open, ranks, loaded);
  if (const double temperature = options.task.temperature; temperature != 1 && !flags.calibrate) {
    core::log_info("calibrated   outputs are divided by a temperature of {:.4g} (preprocess.json)", temperature);
  }

  TableColumns columns;
  columns.truth = true;
  columns.logits = flags.logits;
  const std::unique_ptr<ImageTable> table = image_table(loaded, columns);
  engine::GatheredSamples gathered(task_spec(options), *loaded.task);
  RawOutputs raw(loaded);
  std::unique_ptr<core::LockFile> lock;
  if (flags.calibrate && ranks.is_root()) lock = prepare_calibration(flags, loaded);
  const auto visit = [&](const data::Batch& batch, const torch::Tensor& outputs) {
    if (!ranks.is_root()) return;
    gathered.add(outputs, batch);
    if (flags.calibrate) raw.add(outputs, batch);
    if (!flags.output.empty()) add_results(loaded, batch, outputs, *table);
  };
  const auto predict_all = [&](const engine::BatchVisitor& add) {
    predict_together(ranks, loaded, [&](const data::Batch& batch, const torch::Tensor& outputs, const data::Loader&) {
      add(batch, outputs);
    });
  };
  const engine::EvalReport report =
      engine::evaluate_outputs(*loaded.task, loaded.device, predict_all, visit, output_names(loaded));
  const Uncertainty uncertainty = estimate_uncertainty(flags, ranks, loaded, other, gathered.samples());
  const config::EvalMetric metric = options.train.eval_metric;
  const Outcome outcome = {core::kExitOk,
                           "evaluated",
                           loaded.saved.state.updates,
                           loaded.saved.path,
                           config::eval_metric_name(metric),
                           report.value_of(metric)};
  if (!ranks.is_root()) return outcome;
  log_figures(flags, loaded, report, uncertainty);
  core::Json figures = figures_json(loaded, uncertainty);
  if (flags.calibrate) figures["calibrated"] = calibrate(loaded, raw.samples());
  if (!flags.output.empty()) write_figures(flags, loaded, report, figures, uncertainty, gathered.samples(), *table);
  if (flags.json) {
    write_result("-", core::json_page(figures));
  } else if (flags.output.empty()) {
    write_result("-", table_csv(report.tables.front()));
  }
  return outcome;
}

}  // namespace

Outcome evaluate(const Context& context, const EvalFlags& flags) {
  if (flags.logits && flags.output.empty()) {
    throw Error(ErrorKind::usage, "--logits are written to a file, but --output is not given", "add --output FOLDER");
  }
  return evaluate_on_devices(context,
                             [&](const JoinedRanks& ranks) { return evaluate_as_rank(context, flags, ranks); });
}

}  // namespace stoker::train
