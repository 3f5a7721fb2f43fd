// SPDX-License-Identifier: Apache-2.0
// `train eval` and `train predict`: a checkpoint used without changing it.
#include <optional>

#include "app/app.h"
#include "app/output/certainty_output.h"
#include "app/output/report_csv.h"
#include "app/output/result_output.h"
#include "app/setup/assemble.h"
#include "app/verbs/loaded_model.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "data/open_datasets.h"
#include "engine/task/evaluate.h"
#include "engine/task/gather_samples.h"
#include "observe/listeners/progress.h"
#include "statistics/certainty.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// Names of classes or targets; --num-classes may have made the classes more than the data has.
std::vector<std::string> output_names(const LoadedModel& loaded) {
  std::vector<std::string> names = loaded.saved.class_names;
  const int64_t outputs = loaded.options().data.num_classes;
  while (static_cast<int64_t>(names.size()) < outputs) names.push_back(format("output {}", names.size()));
  return names;
}

/// What each threshold is about: the labels, or class 1 of a binary task.
std::vector<std::string> label_names(const LoadedModel& loaded) {
  const std::vector<std::string> names = output_names(loaded);
  return loaded.options().data.task == config::TaskKind::binary ? std::vector<std::string>{names[1]} : names;
}

Outcome print_config(const LoadedModel& loaded) {
  write_result("-", config::render_yaml(*loaded.given, loaded.settings->resolution()));
  return {core::kExitOk, ""};
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

/// The split that eval is asked for, of the classes that the network knows.
std::shared_ptr<const data::Source> open_labelled(const config::Configuration& given,
                                                  const std::vector<std::string>& trained) {
  const config::DataOptions& options = given.options.data;
  const std::string& split = given.command.split;
  auto source = split.empty() ? data::open_datasets(options).val : data::open_split(options, split);
  require_same_classes(*source, trained);
  return source;
}

/// What predict is given, without labels.
std::shared_ptr<const data::Source> open_loose(const config::Configuration& given,
                                               const std::vector<std::string>& /*trained*/) {
  const config::DataOptions& options = given.options.data;
  const std::string& input = given.command.input;
  return options.dataset == config::DatasetType::clips ? data::open_loose_videos(input, options)
                                                       : data::open_loose_images(input, options.follow_symlinks);
}

/// Calls add(result) for every image of a batch with all that is known of it.
void add_results(const data::Source& source, const data::Batch& batch, const torch::Tensor& outputs,
                 const engine::Task& task, ImageTable& table) {
  const torch::Tensor raw = outputs.to(torch::kCPU).contiguous();                     // float32 [B, outputs]
  const torch::Tensor said = task.predictions(outputs).to(torch::kCPU).contiguous();  // float32 [B, names]
  const torch::Tensor labels = batch.labels.to(torch::kCPU);                          // int64 [B]
  const torch::Tensor targets = batch.targets.to(torch::kCPU).contiguous();           // float32 [B, T]
  for (int64_t i = 0; i < raw.size(0); ++i) {
    ImageResult result;
    result.path = source.name(batch.samples[static_cast<size_t>(i)]);
    result.label = labels.data_ptr<int64_t>()[i];
    result.targets = targets.data_ptr<float>() + i * targets.size(1);
    result.outputs = raw.data_ptr<float>() + i * raw.size(1);
    result.predictions = said.data_ptr<float>() + i * said.size(1);
    table.add(result);
  }
}

std::unique_ptr<ImageTable> image_table(const LoadedModel& loaded, bool truth) {
  return make_image_table(task_spec(loaded.options()), output_names(loaded), loaded.task->num_outputs(), truth,
                          loaded.given->command.logits);
}

/// How sure the evaluation is, and what came of the comparison.
struct Sureness {
  statistics::Certainty certainty;
  std::optional<statistics::Comparison> comparison;
  std::string against{};  ///< path of the checkpoint that was compared with
};

/// Another network on the same samples.
statistics::EvaluatedSamples evaluated_by(LoadedModel& other, const LoadedModel& loaded) {
  const auto same_source = [&](const config::Configuration&, const std::vector<std::string>& trained) {
    require_same_classes(*loaded.source, trained);
    return loaded.source;
  };
  load_network(same_source, other);
  if (other.options().data.task != loaded.options().data.task) {
    throw Error(
        ErrorKind::config,
        format("{} learns another task than {}", core::printable(other.saved.path), core::printable(loaded.saved.path)),
        "compare runs of the same --task");
  }
  const auto feed = evaluation_feed(other.options(), other.source, other.device);
  engine::GatheredSamples gathered(task_spec(other.options()), *other.task);
  engine::predict(*other.model, *feed, other.precision, other.options().train.tta,
                  [&](const data::Batch& batch, const torch::Tensor& outputs) { gathered.add(outputs, batch); });
  return gathered.samples();
}

Sureness sureness_of(const Invocation& invocation, const LoadedModel& loaded,
                     const statistics::EvaluatedSamples& samples) {
  const config::CommandLine& command = loaded.given->command;
  statistics::BootstrapSettings settings;
  settings.resamples = command.resamples;
  settings.seed = loaded.options().train.seed;
  settings.threads = core::read_machine_facts().cpus;
  Sureness sureness = {statistics::certainty_of(samples, settings), {}};
  if (command.against.empty()) return sureness;
  LoadedModel other = load_configuration(invocation, command.against);
  sureness.against = other.saved.path;
  sureness.comparison = statistics::compare(samples, evaluated_by(other, loaded), settings);
  return sureness;
}

core::Json figures_json(const LoadedModel& loaded, const Sureness& sureness) {
  core::Json json = certainty_json(sureness.certainty, label_names(loaded));
  json["checkpoint"] = core::printable(loaded.saved.path);
  json["against"] = sureness.comparison ? comparison_json(*sureness.comparison, sureness.against) : core::Json(nullptr);
  return json;
}

void say_figures(const LoadedModel& loaded, const engine::EvalReport& report, const Sureness& sureness) {
  core::log_info("checkpoint {} (epoch {})", loaded.saved.path, loaded.saved.state.epoch);
  std::string figures = format("images {}  loss {:.4f}", report.images, report.loss);
  for (const engine::Metric& metric : report.metrics) figures += "  " + observe::metric_text(metric, 2);
  core::log_info("{}", figures);
  if (sureness.certainty.settings.resamples > 0) {
    for (const std::string& line : certainty_lines(sureness.certainty, report, label_names(loaded))) {
      core::log_info("{}", line);
    }
  }
  if (!sureness.comparison) return;
  const config::CommandLine& command = loaded.given->command;
  for (const std::string& line : comparison_lines(*sureness.comparison, report, core::printable(command.checkpoint),
                                                  core::printable(command.against))) {
    core::log_info("{}", line);
  }
}

/// Everything as files of a folder.
void write_figures(const LoadedModel& loaded, const engine::EvalReport& report, const Sureness& sureness,
                   const ImageTable& images) {
  const std::string& folder = loaded.given->command.output;
  core::make_directories(folder);
  std::string written;
  const auto write = [&](const std::string& name, const std::string& content) {
    write_result(folder + "/" + name, content);
    written += (written.empty() ? "" : ", ") + folder + "/" + name;
  };
  write("images.csv", images.text());
  for (const engine::ResultTable& result : report.tables) write(result.name + ".csv", table_csv(result));
  write("certainty.json", figures_json(loaded, sureness).dump(1) + "\n");
  if (sureness.certainty.calibration) write("reliability.csv", reliability_csv(*sureness.certainty.calibration));
  core::log_info("written: {}", written);
}

}  // namespace

Outcome eval(const Invocation& invocation) {
  log_to_stderr();
  LoadedModel loaded = load_configuration(invocation, invocation.configuration.command.checkpoint);
  const config::ResolvedOptions& options = loaded.options();
  const config::CommandLine& command = loaded.given->command;
  if (command.print_config) return print_config(loaded);
  if (command.logits && command.output.empty()) {
    throw Error(ErrorKind::usage, "--logits are written to a file, but --output is not given", "add --output FOLDER");
  }
  load_network(open_labelled, loaded);
  const data::Source& source = *loaded.source;
  const auto feed = evaluation_feed(options, loaded.source, loaded.device);

  const std::unique_ptr<ImageTable> table = image_table(loaded, /*truth=*/true);
  engine::GatheredSamples gathered(task_spec(options), *loaded.task);
  const auto visit = [&](const data::Batch& batch, const torch::Tensor& outputs) {
    gathered.add(outputs, batch);
    if (!command.output.empty()) add_results(source, batch, outputs, *loaded.task, *table);
  };
  const engine::EvalReport report = engine::evaluate(*loaded.model, *loaded.task, *feed, loaded.precision,
                                                     options.train.tta, visit, output_names(loaded));
  const Sureness sureness = sureness_of(invocation, loaded, gathered.samples());
  say_figures(loaded, report, sureness);
  if (!command.output.empty()) write_figures(loaded, report, sureness, *table);
  if (command.json) {
    write_result("-", figures_json(loaded, sureness).dump(1) + "\n");
  } else if (command.output.empty()) {
    write_result("-", table_csv(report.tables.front()));
  }
  return {core::kExitOk, "evaluated", loaded.saved.state.updates, loaded.saved.path};
}

Outcome predict(const Invocation& invocation) {
  log_to_stderr();
  LoadedModel loaded = load_configuration(invocation, invocation.configuration.command.checkpoint);
  const config::ResolvedOptions& options = loaded.options();
  const config::CommandLine& command = loaded.given->command;
  if (command.print_config) return print_config(loaded);
  load_network(open_loose, loaded);
  const auto feed = evaluation_feed(options, loaded.source, loaded.device);

  const std::unique_ptr<ImageTable> table = image_table(loaded, /*truth=*/false);
  int64_t images = 0;
  const auto add = [&](const data::Batch& batch, const torch::Tensor& outputs) {
    add_results(*loaded.source, batch, outputs, *loaded.task, *table);
    images += batch.image_count();
  };
  engine::predict(*loaded.model, *feed, loaded.precision, options.train.tta, add);
  const size_t bad = feed->loader().bad_samples().size();
  if (images == 0) {
    throw Error(ErrorKind::data,
                format("none of the {} images of {} could be read", bad, core::printable(command.input)),
                "the warnings above say why");
  }
  write_result(command.output, table->text());
  if (!command.output.empty() && command.output != "-") core::log_info("{} predictions in {}", images, command.output);
  if (bad > 0) core::log_warning("bad images left out: {}", bad);
  return {core::kExitOk, "predicted", loaded.saved.state.updates, loaded.saved.path};
}

}  // namespace stoker::app
