// SPDX-License-Identifier: Apache-2.0
// Fills every `auto` from facts, and writes into the row's origin what it chose and why.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/resolve/check.h"
#include "config/resolve/choices.h"
#include "config/table/parse_value.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

constexpr int64_t kTinyUpdate = 8;  // an update with less than this part of a full one's images is lopsided

/// Whether nobody but us has set it.
bool is_ours(const Row& row) {
  return row.is_auto() || row.origin.kind == Origin::Kind::built_in || row.origin.kind == Origin::Kind::resolved;
}

/// An update of so many images takes as many batches as that makes; one that does not divide is a broken rule.
void choose_accumulation(Configuration& configuration) {
  const Options& o = configuration.options;
  const int64_t total = o.train.total_batch_size, batch = o.loader.batch_size;
  if (total == 0 || total % batch != 0 || o.train.accumulation_steps == total / batch) return;
  Row& row = configuration.table.row_of(configuration.options.train.accumulation_steps);
  if (!is_ours(row)) return;
  give_value(row, std::to_string(total / batch), core::format("total-batch-size {} / batch-size {}", total, batch));
}

void choose_lr(Configuration& configuration) {
  const Options& o = configuration.options;
  const auto images = static_cast<double>(o.loader.batch_size * o.train.accumulation_steps);
  choose(configuration, configuration.options.optim.lr, number_text(o.optim.lr_base * images / 256),
         core::format("lr-base {} x {} images / 256", number_text(o.optim.lr_base), images));
}

/// "runs/" and what the command names: preset and configuration files, else the data set.
void choose_run_dir(Configuration& configuration) {
  const CommandLine& command = configuration.command;
  std::string name = command.preset;
  for (const std::string& path : command.config_files) {
    name += (name.empty() ? "" : "+") + std::filesystem::path(path).stem().string();
  }
  std::string reason = "named after the preset or the config files";
  if (name.empty()) {
    std::filesystem::path data_dir = configuration.options.data.data_dir;
    if (!data_dir.has_filename()) data_dir = data_dir.parent_path();
    name = data_dir.filename().string();
    reason = "named after data-dir";
  }
  if (name.empty() || name == "." || name == "..") name = "run";
  std::replace(name.begin(), name.end(), '/', '-');
  choose(configuration, configuration.options.run.run_dir, "runs/" + name, reason);
}

void choose_eval_metric(Configuration& configuration) {
  const TaskKind task = configuration.options.data.task;
  choose(configuration, configuration.options.train.eval_metric, eval_metric_name(eval_metrics_of(task).front()),
         "for task " + task_name(task));
}

void choose_val_batch_size(Configuration& configuration) {
  const bool small = configuration.options.data.img_size.value() < kSmallImage;
  const int64_t batch_size = configuration.options.loader.batch_size;
  const int64_t val_batch_size = small ? std::max<int64_t>(256, batch_size) : batch_size;
  choose(configuration, configuration.options.loader.val_batch_size, std::to_string(val_batch_size),
         val_batch_size == batch_size ? "batch-size" : "small images fit in larger batches");
}

[[noreturn]] void throw_rules(const std::vector<std::string>& broken) {
  std::string message = broken.front();
  if (broken.size() > 1) {
    message = core::format("{} options do not fit together:", broken.size());
    for (const std::string& rule : broken) message += "\n  " + rule;
  }
  throw core::Error(core::ErrorKind::config, message, "train --print-config shows where each value came from");
}

}  // namespace

void give_value(Row& row, const std::string& text, const std::string& reason) {
  const std::string problem = row.assign(text);
  if (!problem.empty()) {
    throw core::Error(core::ErrorKind::config, row.name + ": the automatic choice does not fit: " + problem,
                      "set " + row.name + " by hand");
  }
  row.origin = {Origin::Kind::resolved, reason};
}

void resolve_machine(Configuration& configuration, const core::MachineFacts& machine) {
  choose_for_machine(configuration, machine);
  choose_run_dir(configuration);
  choose_eval_metric(configuration);
  if (!configuration.options.loader.batch_size.is_auto()) {
    choose_accumulation(configuration);
    choose_lr(configuration);
  }
  const std::vector<std::string> broken = broken_rules(configuration.options);
  if (!broken.empty()) throw_rules(broken);
}

void resolve_data(Configuration& configuration, const DataFacts& data) {
  choose_for_data(configuration, data);
  if (!configuration.options.loader.batch_size.is_auto()) {
    choose_val_batch_size(configuration);
    resolve_drop_last(configuration, data.train_images, /*trains_on_one_image=*/std::nullopt);
  }
  const std::vector<std::string> broken = broken_data_rules(configuration.options, data);
  if (!broken.empty()) throw_rules(broken);
}

void resolve_model(Configuration& configuration, const ModelFacts& model) {
  const std::string reason = "usual for " + model.name;
  choose(configuration, configuration.options.model.drop_rate, number_text(model.drop_rate), reason);
  choose(configuration, configuration.options.model.drop_path_rate, number_text(model.drop_path_rate), reason);
}

void resolve_batch(Configuration& configuration, const BatchChoice& choice) {
  choose(configuration, configuration.options.loader.batch_size, std::to_string(choice.batch_size), choice.reason);
  Row& steps = configuration.table.row_of(configuration.options.train.accumulation_steps);
  if (choice.accumulation_steps > 0 && is_ours(steps)) {
    give_value(steps, std::to_string(choice.accumulation_steps), choice.reason);
  }
  choose_accumulation(configuration);
  choose_lr(configuration);
  choose_val_batch_size(configuration);
  const std::vector<std::string> broken = broken_rules(configuration.options);
  if (!broken.empty()) throw_rules(broken);
}

void resolve_drop_last(Configuration& configuration, int64_t train_images, std::optional<bool> trains_on_one_image) {
  const Options& o = configuration.options;
  const int64_t batch = o.loader.batch_size, update = batch * o.train.accumulation_steps;
  const int64_t full_batches = train_images / batch, last = train_images % batch;
  const auto choose_it = [&](bool drops, const std::string& reason) {
    choose(configuration, configuration.options.loader.drop_last, drops ? "true" : "false", reason);
  };
  if (last == 0) return choose_it(false, "every batch is full");
  if (full_batches == 0) return choose_it(false, "there is only one batch");
  const bool is_an_update = full_batches % o.train.accumulation_steps == 0;
  if (is_an_update && last * kTinyUpdate < update) {
    return choose_it(true, core::format("an update on the last {} would count as much as one on {}", last, update));
  }
  if (last > 1) return choose_it(false, core::format("the last batch has {} images", last));
  if (!trains_on_one_image) return;
  choose_it(!*trains_on_one_image, *trains_on_one_image ? "the network can train on the last image alone"
                                                        : "batch norm cannot train on the last image alone");
}

void resolve_measured(Row& row, const std::string& text, const std::string& reason) {
  const bool is_ours = row.is_auto() || row.origin.kind == Origin::Kind::resolved;
  if (is_ours) give_value(row, text, reason);
}

}  // namespace stoker::config
