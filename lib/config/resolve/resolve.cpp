// SPDX-License-Identifier: Apache-2.0
// Fills every `auto` from facts, and writes into the row's origin what it chose and why.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/resolve/check.h"
#include "config/table/parse_value.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

constexpr int64_t kTinyUpdate = 8;   // an update with less than this part of a full one's images is lopsided
constexpr int64_t kSmallImage = 64;  // pixels: from here on images are treated as photographs

void give_value(Table& table, Row& row, const std::string& text, const std::string& reason) {
  const std::string problem = table.set(row, text, {Origin::Kind::resolved, reason});
  if (problem.empty()) return;
  throw core::Error(core::ErrorKind::config, row.name + ": the automatic choice does not fit: " + problem,
                    "set " + row.name + " by hand");
}

/// Gives an automatic row its value; rows that were given one are left alone.
void choose(Table& table, const std::string& name, const std::string& text, const std::string& reason) {
  Row& row = *table.find(name);
  if (row.is_auto()) give_value(table, row, text, reason);
}

[[noreturn]] void throw_unavailable(const std::string& message) {
  throw core::Error(core::ErrorKind::unavailable, message, "run on another machine, or use --device cpu");
}

/// Leaves `cpu` or `cuda:N`, and N < the number of accelerators.
void choose_device(Configuration& configuration, const core::MachineFacts& machine) {
  Table& table = configuration.table;
  std::string& device = configuration.options.device.device;
  const size_t count = machine.accelerators.size();
  if (device == "auto") {
    const bool has_cuda = count > 0;
    choose(
        table, "device", has_cuda ? "cuda:0" : "cpu",
        has_cuda ? "first of " + std::to_string(count) + ", " + machine.accelerators[0].name : "no CUDA device found");
    return;
  }
  if (device == "cpu") return;
  if (count == 0) throw_unavailable("device " + device + " was asked for, but no CUDA device is available");
  if (device == "cuda") device = "cuda:0";
  int64_t index = 0;
  read_integer(device.substr(5), 0, 63, index);
  if (static_cast<size_t>(index) < count) return;
  throw_unavailable(core::format("device {} was asked for, but there {} {} CUDA device{}", device,
                                 count == 1 ? "is" : "are", count, count == 1 ? "" : "s"));
}

size_t cuda_index(const std::string& device) {
  int64_t index = 0;
  read_integer(device.substr(5), 0, 63, index);
  return static_cast<size_t>(index);
}

void choose_threads(Configuration& configuration, const core::MachineFacts& machine) {
  const int64_t cpus = std::max(machine.cpus, 1);
  const std::string count = core::format("{} CPU{}", cpus, cpus == 1 ? "" : "s");
  const std::string source = machine.cpus_reason.empty() ? count : count + " (" + machine.cpus_reason + ")";
  choose(configuration.table, "threads", std::to_string(std::min<int64_t>(cpus, 1024)), source);
  if (configuration.options.device.device == "cpu") {
    choose(configuration.table, "num-workers", std::to_string(std::min<int64_t>(cpus, 4)),
           "at most 4 of " + source + ", which decoding shares with the network");
  } else {
    choose(configuration.table, "num-workers", std::to_string(std::clamp<int64_t>(cpus - 1, 1, 1024)),
           "one less than " + source + ", the training thread keeps one");
  }
}

void choose_precision(Configuration& configuration, const core::MachineFacts& machine) {
  Table& table = configuration.table;
  const bool amp = configuration.options.precision.amp;
  const std::string& device = configuration.options.device.device;
  if (device == "cpu") {
    choose(table, "amp-dtype", "bfloat16", "the CPU computes no float16");
    choose(table, "channels-last", "true", "faster on the CPU");
    return;
  }
  const core::AcceleratorFacts& accelerator = machine.accelerators[cuda_index(device)];
  const bool native = accelerator.native_bfloat16;
  choose(table, "amp-dtype", native ? "bfloat16" : "float16",
         accelerator.name + (native ? " computes bfloat16 natively" : " does not compute bfloat16 natively"));
  choose(table, "channels-last", amp ? "true" : "false", amp ? "faster with amp" : "amp is off");
}

/// Whether nobody but us has set it.
bool is_ours(const Row& row) {
  return row.is_auto() || row.origin.kind == Origin::Kind::built_in || row.origin.kind == Origin::Kind::resolved;
}

/// An update of so many images takes as many batches as that makes; one that does not divide is a broken rule.
void choose_accumulation(Configuration& configuration) {
  const Options& o = configuration.options;
  const int64_t total = o.train.total_batch_size, batch = o.loader.batch_size;
  if (total == 0 || total % batch != 0 || o.train.accumulation_steps == total / batch) return;
  Row& row = *configuration.table.find("accumulation-steps");
  if (!is_ours(row)) return;
  give_value(configuration.table, row, std::to_string(total / batch),
             core::format("total-batch-size {} / batch-size {}", total, batch));
}

void choose_lr(Configuration& configuration) {
  const Options& o = configuration.options;
  const auto images = static_cast<double>(o.loader.batch_size * o.train.accumulation_steps);
  choose(configuration.table, "lr", number_text(o.optim.lr_base * images / 256),
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
  choose(configuration.table, "run-dir", "runs/" + name, reason);
}

void choose_eval_metric(Configuration& configuration) {
  const TaskKind task = configuration.options.data.task;
  choose(configuration.table, "eval-metric", eval_metric_name(eval_metrics_of(task).front()),
         "for task " + task_name(task));
}

/// n / (K n_k), as scikit-learn's class_weight="balanced": 1 on average over the images. A class without images has 0.
std::vector<double> balanced_class_weights(const std::vector<int64_t>& images) {
  double present = 0, all = 0;
  for (const int64_t n : images) {
    present += n > 0 ? 1 : 0;
    all += static_cast<double>(n);
  }
  std::vector<double> weights;
  for (const int64_t n : images) weights.push_back(n > 0 ? all / (present * static_cast<double>(n)) : 0);
  return weights;
}

/// Negatives per positive; 1 where there is none of either.
std::vector<double> balanced_positive_weights(TaskKind task, const DataFacts& data) {
  const auto ratio = [](double negatives, double positives) {
    return positives > 0 && negatives > 0 ? negatives / positives : 1.0;
  };
  if (task == TaskKind::binary && data.class_images.size() == 2) {
    return {ratio(static_cast<double>(data.class_images[0]), static_cast<double>(data.class_images[1]))};
  }
  std::vector<double> weights;
  if (task == TaskKind::multilabel) {
    for (const double share : data.target_mean) weights.push_back(ratio(1 - share, share));
  }
  return weights;
}

void choose_weights(Configuration& configuration, const DataFacts& data) {
  const auto text = [](const std::vector<double>& weights) {
    return weights.empty() ? "none" : list_value_text(weights);
  };
  const TaskKind task = configuration.options.data.task;
  std::vector<int64_t> class_images = data.class_images;  // --num-classes may say that there are more
  class_images.resize(static_cast<size_t>(configuration.options.data.num_classes.value()), 0);
  choose(configuration.table, "class-weights",
         text(task == TaskKind::multiclass ? balanced_class_weights(class_images) : std::vector<double>{}),
         "from the images per class in the training split");
  choose(configuration.table, "pos-weight", text(balanced_positive_weights(task, data)),
         "negatives / positives in the training split");
}

/// One factor for all angles, so that they weigh alike; other targets by their spread.
void choose_target_scale(Configuration& configuration, const DataFacts& data) {
  const TaskKind task = configuration.options.data.task;
  if (!has_scaled_targets(task)) return;
  if (task == TaskKind::head_pose) {
    choose(configuration.table, "target-mean", "0", "for task head-pose");
    choose(configuration.table, "target-scale", "45", "for task head-pose");
    return;
  }
  std::vector<double> scales = data.target_deviation;
  for (double& scale : scales) scale = scale > 0 ? scale : 1;
  choose(configuration.table, "target-mean", list_value_text(data.target_mean), "of the training split");
  choose(configuration.table, "target-scale", list_value_text(scales), "standard deviation in the training split");
}

/// Prediction, too, must know later what the network has seen.
void note_recognised_clips(Configuration& configuration, const DataFacts& data) {
  if (!data.has_videos || configuration.options.data.dataset != DatasetType::automatic) return;
  give_value(configuration.table, *configuration.table.find("dataset"), "clips", "folders of frames in class folders");
}

/// What only the training split can say stands in the configuration of every run; without it there is nothing to take.
void refuse_what_training_knows(Configuration& configuration, const DataFacts& data) {
  if (data.of_training) return;
  std::string names;
  const auto add = [&](const std::string& name, bool is_measured) {
    if (is_measured && configuration.table.find(name)->is_auto()) names += (names.empty() ? "" : ", ") + name;
  };
  const TaskKind task = configuration.options.data.task;
  add("class-weights", true);
  add("pos-weight", true);
  add("target-mean", has_scaled_targets(task) && task != TaskKind::head_pose);
  add("target-scale", has_scaled_targets(task) && task != TaskKind::head_pose);
  add("mean", data.has_float_samples);
  add("std", data.has_float_samples);
  if (names.empty()) return;
  throw core::Error(core::ErrorKind::config,
                    core::format("{}: auto is measured on the training split, which is not read here", names),
                    "give the values that the run was trained with, with -c and a YAML file");
}

void choose_shape(Configuration& configuration, const DataFacts& data) {
  Table& table = configuration.table;
  choose(table, "num-classes", std::to_string(data.num_classes),
         learns_numbers(configuration.options.data.task) ? "targets in the data" : "classes in the data");
  choose(table, "in-chans", std::to_string(data.channels), "channels of most images");
  if (data.has_fixed_size) {
    choose(table, "img-size", std::to_string(data.median_height),
           core::format("samples stay as they are, {} high and {} wide", data.median_height, data.median_width));
    return;
  }
  const int64_t side = std::min(data.median_height, data.median_width);
  const std::string median = core::format("median size {} x {}", data.median_width, data.median_height);
  const bool small = side > 0 && side <= kSmallImage;
  choose(table, "img-size", std::to_string(small ? side : 224), median);
}

/// What turns an image into another one of the same thing does not hold for numbers in rows and columns: frequency is
/// not time, and time has a direction.
void leave_as_they_are(Configuration& configuration) {
  const std::string reason = "samples stay as they are";
  choose(configuration.table, "train-crop", "none", reason);
  Row& hflip = *configuration.table.find("hflip");
  if (hflip.origin.kind == Origin::Kind::built_in) give_value(configuration.table, hflip, "0", reason);
}

void choose_val_batch_size(Configuration& configuration) {
  const bool small = configuration.options.data.img_size.value() < kSmallImage;
  const int64_t batch_size = configuration.options.loader.batch_size;
  const int64_t val_batch_size = small ? std::max<int64_t>(256, batch_size) : batch_size;
  choose(configuration.table, "val-batch-size", std::to_string(val_batch_size),
         val_batch_size == batch_size ? "batch-size" : "small images fit in larger batches");
}

void choose_crops(Configuration& configuration) {
  Table& table = configuration.table;
  const int64_t size = configuration.options.data.img_size.value();
  const bool small = size < kSmallImage;
  const std::string reason = core::format("{} pixels", size);
  choose(table, "train-crop", small ? "padded" : "random-resized", reason);
  choose(table, "crop-padding", std::to_string(size <= 28 ? 2 : size <= 32 ? 4 : size / 8), reason);
  choose(table, "crop-pct", small ? "1" : "0.875", reason);
}

/// Six digits are more than a sample of the data knows.
std::string rounded_list_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ",") + core::format("{:.6g}", value);
  return text;
}

void choose_normalization(Configuration& configuration, const DataFacts& data) {
  if (!data.input_mean.empty()) {
    const std::string measured =
        core::format("measured on {} samples of the training split", core::count_text(data.input_samples));
    std::vector<double> deviation = data.input_deviation;
    for (double& value : deviation) value = value > 0 ? value : 1;
    choose(configuration.table, "mean", rounded_list_text(data.input_mean), measured);
    choose(configuration.table, "std", rounded_list_text(deviation), measured);
    return;
  }
  const bool rgb = configuration.options.data.in_chans.value() == 3;
  const std::string reason = rgb ? "ImageNet's, for 3 channels" : "for 1 channel";
  choose(configuration.table, "mean", rgb ? "0.485,0.456,0.406" : "0.5", reason);
  choose(configuration.table, "std", rgb ? "0.229,0.224,0.225" : "0.25", reason);
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

void resolve_machine(Configuration& configuration, const core::MachineFacts& machine) {
  choose_device(configuration, machine);
  choose_threads(configuration, machine);
  choose_precision(configuration, machine);
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
  refuse_what_training_knows(configuration, data);
  note_recognised_clips(configuration, data);
  choose_shape(configuration, data);
  choose_target_scale(configuration, data);
  choose_weights(configuration, data);
  if (data.has_fixed_size) leave_as_they_are(configuration);
  choose_crops(configuration);
  if (!configuration.options.loader.batch_size.is_auto()) {
    choose_val_batch_size(configuration);
    resolve_drop_last(configuration, data.train_images, /*trains_on_one_image=*/std::nullopt);
  }
  choose_normalization(configuration, data);
  const std::vector<std::string> broken = broken_data_rules(configuration.options, data);
  if (!broken.empty()) throw_rules(broken);
}

void resolve_model(Configuration& configuration, const ModelFacts& model) {
  const std::string reason = "usual for " + model.name;
  choose(configuration.table, "drop-rate", number_text(model.drop_rate), reason);
  choose(configuration.table, "drop-path-rate", number_text(model.drop_path_rate), reason);
}

void resolve_batch(Configuration& configuration, const BatchChoice& choice) {
  choose(configuration.table, "batch-size", std::to_string(choice.batch_size), choice.reason);
  Row& steps = *configuration.table.find("accumulation-steps");
  if (choice.accumulation_steps > 0 && is_ours(steps)) {
    give_value(configuration.table, steps, std::to_string(choice.accumulation_steps), choice.reason);
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
    choose(configuration.table, "drop-last", drops ? "true" : "false", reason);
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

void resolve_measured(Configuration& configuration, const std::string& name, const std::string& text,
                      const std::string& reason) {
  Row& row = *configuration.table.find(name);
  const bool is_ours = row.is_auto() || row.origin.kind == Origin::Kind::resolved;
  if (is_ours) give_value(configuration.table, row, text, reason);
}

}  // namespace stoker::config
