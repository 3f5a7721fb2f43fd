// SPDX-License-Identifier: Apache-2.0
// What the data decides.
#include <algorithm>
#include <string>
#include <vector>

#include "config/resolve/choices.h"
#include "config/table/parse_value.h"
#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

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
  choose(configuration, configuration.options.task.class_weights,
         text(task == TaskKind::multiclass ? balanced_class_weights(class_images) : std::vector<double>{}),
         "from the images per class in the training split");
  choose(configuration, configuration.options.task.pos_weight, text(balanced_positive_weights(task, data)),
         "negatives / positives in the training split");
}

/// One factor for all angles, so that they weigh alike; other targets by their spread.
void choose_target_scale(Configuration& configuration, const DataFacts& data) {
  const TaskKind task = configuration.options.data.task;
  if (!has_scaled_targets(task)) return;
  if (task == TaskKind::head_pose) {
    choose(configuration, configuration.options.task.target_mean, "0", "for task head-pose");
    choose(configuration, configuration.options.task.target_scale, "45", "for task head-pose");
    return;
  }
  std::vector<double> scales = data.target_deviation;
  for (double& scale : scales) scale = scale > 0 ? scale : 1;
  choose(configuration, configuration.options.task.target_mean, list_value_text(data.target_mean),
         "of the training split");
  choose(configuration, configuration.options.task.target_scale, list_value_text(scales),
         "standard deviation in the training split");
}

/// Prediction, too, must know later what the network has seen.
void note_recognised_clips(Configuration& configuration, const DataFacts& data) {
  if (!data.has_videos || configuration.options.data.dataset != DatasetType::automatic) return;
  give_value(configuration.table.row_of(configuration.options.data.dataset), "clips",
             "folders of frames in class folders");
}

/// What only the training split can say stands in the configuration of every run; without it there is nothing to take.
void refuse_what_training_knows(Configuration& configuration, const DataFacts& data) {
  if (data.of_training) return;
  std::string names;
  const Options& o = configuration.options;
  const auto add = [&](const auto& option, bool is_measured) {
    const Row& row = configuration.table.row_of(option);
    if (is_measured && row.is_auto()) names += (names.empty() ? "" : ", ") + row.name;
  };
  const TaskKind task = o.data.task;
  add(o.task.class_weights, true);
  add(o.task.pos_weight, true);
  add(o.task.target_mean, has_scaled_targets(task) && task != TaskKind::head_pose);
  add(o.task.target_scale, has_scaled_targets(task) && task != TaskKind::head_pose);
  add(o.data.mean, data.has_float_samples);
  add(o.data.std, data.has_float_samples);
  if (names.empty()) return;
  throw core::Error(core::ErrorKind::config,
                    core::format("{}: auto is measured on the training split, which is not read here", names),
                    "give the values that the run was trained with, with -c and a YAML file");
}

void choose_shape(Configuration& configuration, const DataFacts& data) {
  choose(configuration, configuration.options.data.num_classes, std::to_string(data.num_classes),
         learns_numbers(configuration.options.data.task) ? "targets in the data" : "classes in the data");
  choose(configuration, configuration.options.data.in_chans, std::to_string(data.channels), "channels of most images");
  if (data.has_fixed_size) {
    choose(configuration, configuration.options.data.img_size, std::to_string(data.median_height),
           core::format("samples stay as they are, {} high and {} wide", data.median_height, data.median_width));
    return;
  }
  const int64_t side = std::min(data.median_height, data.median_width);
  const std::string median = core::format("median size {} x {}", data.median_width, data.median_height);
  const bool small = side > 0 && side <= kSmallImage;
  choose(configuration, configuration.options.data.img_size, std::to_string(small ? side : 224), median);
}

/// What turns an image into another one of the same thing does not hold for numbers in rows and columns: frequency is
/// not time, and time has a direction.
void leave_as_they_are(Configuration& configuration) {
  const std::string reason = "samples stay as they are";
  choose(configuration, configuration.options.augment.train_crop, "none", reason);
  Row& hflip = configuration.table.row_of(configuration.options.augment.hflip);
  if (hflip.origin.kind == Origin::Kind::built_in) give_value(hflip, "0", reason);
}

void choose_crops(Configuration& configuration) {
  const int64_t size = configuration.options.data.img_size.value();
  const bool small = size < kSmallImage;
  const std::string reason = core::format("{} pixels", size);
  choose(configuration, configuration.options.augment.train_crop, small ? "padded" : "random-resized", reason);
  choose(configuration, configuration.options.augment.crop_padding,
         std::to_string(size <= 28   ? 2
                        : size <= 32 ? 4
                                     : size / 8),
         reason);
  choose(configuration, configuration.options.augment.crop_pct, small ? "1" : "0.875", reason);
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
    choose(configuration, configuration.options.data.mean, rounded_list_text(data.input_mean), measured);
    choose(configuration, configuration.options.data.std, rounded_list_text(deviation), measured);
    return;
  }
  const bool rgb = configuration.options.data.in_chans.value() == 3;
  const std::string reason = rgb ? "ImageNet's, for 3 channels" : "for 1 channel";
  choose(configuration, configuration.options.data.mean, rgb ? "0.485,0.456,0.406" : "0.5", reason);
  choose(configuration, configuration.options.data.std, rgb ? "0.229,0.224,0.225" : "0.25", reason);
}

}  // namespace

void choose_for_data(Configuration& configuration, const DataFacts& data) {
  refuse_what_training_knows(configuration, data);
  note_recognised_clips(configuration, data);
  choose_shape(configuration, data);
  choose_target_scale(configuration, data);
  choose_weights(configuration, data);
  if (data.has_fixed_size) leave_as_they_are(configuration);
  choose_crops(configuration);
  choose_normalization(configuration, data);
}

}  // namespace stoker::config
