// SPDX-License-Identifier: Apache-2.0
// `train eval` and `train predict`: a checkpoint used without changing it.
#include <cstdio>

#include "app/app.h"
#include "app/output/report_csv.h"
#include "app/output/result_output.h"
#include "app/setup/assemble.h"
#include "app/setup/run_directory.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "data/open_datasets.h"
#include "engine/checkpoint/weights.h"
#include "engine/task/evaluate.h"
#include "observe/listeners/progress.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// Results go to standard output, so that they can be piped; everything that is said goes to standard error.
void log_to_stderr() {
  core::set_console_writer([](core::LogLevel level, std::string_view line) {
    const char* const prefix = level == core::LogLevel::warning ? "warning: "
                               : level == core::LogLevel::error ? "error: "
                                                                : "";
    std::fprintf(stderr, "%s%.*s\n", prefix, static_cast<int>(line.size()), line.data());
  });
}

/// A checkpoint's model with its own configuration, over which this command line's flags have been laid.
struct LoadedModel {
  std::unique_ptr<config::Configuration> configuration;
  engine::SavedModel saved;
  std::unique_ptr<engine::Task> task;
  std::shared_ptr<model::ImageModel> model;
  torch::Device device = torch::kCPU;
  engine::Precision precision;
};

LoadedModel load_model(const Invocation& invocation) {
  const config::CommandLine& command = invocation.configuration.command;
  LoadedModel loaded;
  loaded.saved = engine::load_saved_model(find_checkpoint(command.checkpoint, command.which));
  loaded.configuration = std::make_unique<config::Configuration>();
  config::read_run_config(loaded.saved.config_yaml, loaded.saved.path + "/config.yaml", *loaded.configuration);
  config::parse_command_line(invocation.argc, invocation.argv, *loaded.configuration);
  config::resolve_machine(*loaded.configuration, machine_with_accelerators());
  const config::Options& options = loaded.configuration->options;
  loaded.device = open_and_configure_device(options);
  loaded.precision = precision_of(options, loaded.device);
  loaded.task = build_task(options, loaded.device);
  loaded.model = build_model(options, loaded.device);
  engine::load_weights(*loaded.model, loaded.saved.weights, loaded.saved.path);
  return loaded;
}

/// Names of classes or targets; --num-classes may have made the classes more than the data has.
std::vector<std::string> output_names(const LoadedModel& loaded) {
  std::vector<std::string> names = loaded.saved.class_names;
  const int64_t outputs = loaded.configuration->options.data.num_classes;
  while (static_cast<int64_t>(names.size()) < outputs) names.push_back(format("output {}", names.size()));
  return names;
}

Outcome print_config(const LoadedModel& loaded) {
  write_result("-", config::render_yaml(loaded.configuration->table, /*with_origin=*/true));
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

/// What a run refuses for its data; other data may have been given since.
void require_images_to_mirror(const config::Options& options, const data::Source& source) {
  if (options.train.tta == config::TestTimeAugmentation::none || source.fixed_shape().height == 0) return;
  throw Error(ErrorKind::config, "tta hflip is for images, but samples of HDF5 files stay as they are",
              "evaluate with --tta none");
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
  return make_image_table(task_spec(loaded.configuration->options), output_names(loaded), loaded.task->num_outputs(),
                          truth, loaded.configuration->command.logits);
}

}  // namespace

Outcome eval(const Invocation& invocation) {
  log_to_stderr();
  LoadedModel loaded = load_model(invocation);
  const config::Options& options = loaded.configuration->options;
  const config::CommandLine& command = loaded.configuration->command;
  if (command.print_config) return print_config(loaded);
  if (command.logits && command.output.empty()) {
    throw Error(ErrorKind::usage, "--logits are written to a file, but --output is not given", "add --output FOLDER");
  }
  const std::shared_ptr<const data::Source> source =
      command.split.empty() ? data::open_datasets(options.data).val : data::open_split(options.data, command.split);
  require_same_classes(*source, loaded.saved.class_names);
  require_model_for(options, *source);
  require_images_to_mirror(options, *source);
  const auto feed = evaluation_feed(options, source, loaded.device);

  const std::unique_ptr<ImageTable> table = image_table(loaded, /*truth=*/true);
  engine::BatchVisitor visit;
  if (!command.output.empty()) {
    visit = [&](const data::Batch& batch, const torch::Tensor& outputs) {
      add_results(*source, batch, outputs, *loaded.task, *table);
    };
  }
  const engine::EvalReport report = engine::evaluate(*loaded.model, *loaded.task, *feed, loaded.precision,
                                                     options.train.tta, visit, output_names(loaded));
  core::log_info("checkpoint {} (epoch {})", loaded.saved.path, loaded.saved.state.epoch);
  std::string figures = format("images {}  loss {:.4f}", report.images, report.loss);
  for (const engine::Metric& metric : report.metrics) figures += "  " + observe::metric_text(metric, 2);
  core::log_info("{}", figures);
  if (command.output.empty()) {
    write_result("-", table_csv(report.tables.front()));
  } else {
    core::make_directories(command.output);
    write_result(command.output + "/images.csv", table->text());
    std::string written = command.output + "/images.csv";
    for (const engine::ResultTable& result : report.tables) {
      const std::string path = format("{}/{}.csv", command.output, result.name);
      write_result(path, table_csv(result));
      written += ", " + path;
    }
    core::log_info("written: {}", written);
  }
  return {core::kExitOk, "evaluated", loaded.saved.state.updates, loaded.saved.path};
}

Outcome predict(const Invocation& invocation) {
  log_to_stderr();
  LoadedModel loaded = load_model(invocation);
  const config::Options& options = loaded.configuration->options;
  const config::CommandLine& command = loaded.configuration->command;
  if (command.print_config) return print_config(loaded);
  const auto source = options.data.dataset == config::DatasetType::clips
                          ? data::open_loose_videos(command.input, options.data)
                          : data::open_loose_images(command.input, options.data.follow_symlinks);
  const auto feed = evaluation_feed(options, source, loaded.device);

  const std::unique_ptr<ImageTable> table = image_table(loaded, /*truth=*/false);
  int64_t images = 0;
  const auto add = [&](const data::Batch& batch, const torch::Tensor& outputs) {
    add_results(*source, batch, outputs, *loaded.task, *table);
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
