// SPDX-License-Identifier: Apache-2.0
// `train eval` and `train predict`: a checkpoint used without changing it.
#include <cstdio>

#include "app/app.h"
#include "app/assemble.h"
#include "app/report_csv.h"
#include "app/result_output.h"
#include "app/run_directory.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "engine/evaluate.h"
#include "engine/weights.h"

namespace stoker::app {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// Results go to standard output, so that they can be piped; everything that is said goes to standard error.
void log_to_stderr() {
  core::set_console_writer([](core::LogLevel level, std::string_view line) {
    const char* const prefix = level == core::LogLevel::warning ? "warning: " : level == core::LogLevel::error ? "error: " : "";
    std::fprintf(stderr, "%s%.*s\n", prefix, static_cast<int>(line.size()), line.data());
  });
}

/// A checkpoint's model with its own configuration, over which this command line's flags have been laid.
struct LoadedModel {
  std::unique_ptr<config::Configuration> configuration;
  engine::SavedModel saved;
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
  loaded.model = build_model(options, loaded.device);
  engine::load_weights(*loaded.model, loaded.saved.weights, loaded.saved.path);
  return loaded;
}

/// One name per output of the network, which --num-classes may have made more than the data has classes.
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
  if (source.class_names() == trained) return;
  throw Error(ErrorKind::data,
              format("the classes of the data ({}) are not those of the model ({})", core::list_text(source.class_names()),
                     core::list_text(trained)),
              "evaluate on data with the same classes, in folders or labels of the same names");
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
  const auto feed = evaluation_feed(options, source, loaded.device);

  const std::vector<std::string> names = output_names(loaded);
  ConfusionMatrix counts(names.size(), std::vector<int64_t>(names.size(), 0));
  PredictionTable table(names, /*truth=*/true, command.logits);
  const engine::EvalReport report =
      engine::evaluate(*loaded.model, *feed, loaded.precision, [&](const data::Batch& batch, const torch::Tensor& logits) {
        const torch::Tensor scores = logits.to(torch::kCPU).contiguous();  // float32 [B, outputs]
        const torch::Tensor predicted = scores.argmax(1);
        const torch::Tensor truth = batch.labels.to(torch::kCPU);
        for (int64_t i = 0; i < truth.size(0); ++i) {
          const int64_t label = truth.data_ptr<int64_t>()[i];
          ++counts[static_cast<size_t>(label)][static_cast<size_t>(predicted.data_ptr<int64_t>()[i])];
          if (command.output.empty()) continue;
          table.add(source->name(batch.samples[static_cast<size_t>(i)]), label,
                    scores.data_ptr<float>() + i * scores.size(1));
        }
      });
  core::log_info("checkpoint {} (epoch {})", loaded.saved.path, loaded.saved.state.epoch);
  core::log_info("images {}  loss {:.4f}  top1 {:.2f}%  top5 {:.2f}%", report.images, report.loss, report.top1_percent,
                 report.top5_percent);
  const std::string per_class = per_class_csv(counts, names);
  if (command.output.empty()) {
    write_result("-", per_class);
  } else {
    core::make_directories(command.output);
    write_result(command.output + "/per_class.csv", per_class);
    write_result(command.output + "/confusion.csv", confusion_csv(counts, names));
    write_result(command.output + "/images.csv", table.text());
    core::log_info("written: {0}/images.csv, {0}/per_class.csv, {0}/confusion.csv", command.output);
  }
  return {core::kExitOk, "evaluated", loaded.saved.state.updates, loaded.saved.path};
}

Outcome predict(const Invocation& invocation) {
  log_to_stderr();
  LoadedModel loaded = load_model(invocation);
  const config::Options& options = loaded.configuration->options;
  const config::CommandLine& command = loaded.configuration->command;
  if (command.print_config) return print_config(loaded);
  const auto source = data::open_loose_images(command.input, options.data.follow_symlinks);
  const auto feed = evaluation_feed(options, source, loaded.device);

  PredictionTable table(output_names(loaded), /*truth=*/false, command.logits);
  int64_t images = 0;
  engine::predict(*loaded.model, *feed, loaded.precision, [&](const data::Batch& batch, const torch::Tensor& logits) {
    const torch::Tensor scores = logits.to(torch::kCPU).contiguous();  // float32 [B, outputs]
    for (int64_t i = 0; i < scores.size(0); ++i) {
      table.add(source->name(batch.samples[static_cast<size_t>(i)]), /*truth=*/-1,
                scores.data_ptr<float>() + i * scores.size(1));
    }
    images += batch.image_count();
  });
  const size_t bad = feed->loader().bad_samples().size();
  if (images == 0) {
    throw Error(ErrorKind::data, format("none of the {} images of {} could be read", bad, core::printable(command.input)),
                "the warnings above say why");
  }
  write_result(command.output, table.text());
  if (!command.output.empty() && command.output != "-") core::log_info("{} predictions in {}", images, command.output);
  if (bad > 0) core::log_warning("bad images left out: {}", bad);
  return {core::kExitOk, "predicted", loaded.saved.state.updates, loaded.saved.path};
}

}  // namespace stoker::app
