// SPDX-License-Identifier: Apache-2.0
// Choices that depend on the data and on the images of an update: shape, crops and scales, optimizer, schedule and
// learning rate.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "config/resolve/draft.h"
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

void choose_weights(Draft& draft, const DataFacts& data) {
  const auto text = [](const std::vector<double>& weights) {
    return weights.empty() ? "none" : list_value_text(weights);
  };
  const TaskKind task = draft.options().data.task;
  std::vector<int64_t> class_images = data.class_images;  // --num-classes may be larger
  class_images.resize(static_cast<size_t>(draft.options().data.num_classes.value()), 0);
  draft.choose(draft.options().task.class_weights,
               text(task == TaskKind::multiclass ? balanced_class_weights(class_images) : std::vector<double>{}),
               "from the images per class in the training split");
  draft.choose(draft.options().task.pos_weight, text(balanced_positive_weights(task, data)),
               "negatives / positives in the training split");
}

/// One factor for all angles, so that they weigh alike; other targets by their spread.
void choose_target_scale(Draft& draft, const DataFacts& data) {
  const TaskKind task = draft.options().data.task;
  if (!has_scaled_targets(task)) {
    draft.set_default(draft.options().task.target_mean, {});
    draft.set_default(draft.options().task.target_scale, {});
    return;
  }
  if (task == TaskKind::head_pose) {
    draft.choose(draft.options().task.target_mean, "0", "for task head-pose");
    draft.choose(draft.options().task.target_scale, "45", "for task head-pose");
    return;
  }
  std::vector<double> scales = data.target_deviation;
  for (double& scale : scales) scale = scale > 0 ? scale : 1;
  draft.choose(draft.options().task.target_mean, list_value_text(data.target_mean), "of the training split");
  draft.choose(draft.options().task.target_scale, list_value_text(scales), "standard deviation in the training split");
}

/// Recorded, because prediction must open samples of the same kind.
void note_recognised_clips(Draft& draft, const DataFacts& data) {
  if (!data.has_videos || draft.options().data.dataset != DatasetType::automatic) return;
  draft.replace(draft.options().data.dataset, "clips", "the data are videos");
}

/// Values that depend on the training split are in the configuration of every run; without it there is nothing to take.
void refuse_training_options(Draft& draft, const DataFacts& data) {
  if (data.of_training) return;
  std::string names;
  const Options& o = draft.options();
  const auto add = [&](const Auto<std::vector<double>>& option, bool is_measured) {
    if (is_measured && option.is_auto()) names += (names.empty() ? "" : ", ") + draft.name_of(option);
  };
  const TaskKind task = o.data.task;
  add(o.task.class_weights, true);
  add(o.task.pos_weight, true);
  add(o.task.target_mean, has_scaled_targets(task) && task != TaskKind::head_pose);
  add(o.task.target_scale, has_scaled_targets(task) && task != TaskKind::head_pose);
  const bool has_measured_inputs =
      data.has_float_samples || (data.has_fixed_size && data.channels != 1 && data.channels != 3);
  add(o.data.mean, has_measured_inputs);
  add(o.data.std, has_measured_inputs);
  if (names.empty()) return;
  throw core::Error(core::ErrorKind::config,
                    core::format("{}: auto is measured on the training split, which is not read here", names),
                    "give the values that the run was trained with, with -c and a YAML file");
}

void choose_shape(Draft& draft, const DataFacts& data) {
  draft.choose(draft.options().data.num_classes, std::to_string(data.num_classes),
               is_numeric_task(draft.options().data.task) ? "targets in the data" : "classes in the data");
  draft.choose(draft.options().data.in_chans, std::to_string(data.channels),
               data.has_fixed_size ? "channels of the samples" : "channels of most images");
  if (data.has_fixed_size) {
    draft.choose(draft.options().data.img_size, std::to_string(data.median_height),
                 core::format("samples have a fixed size, {} high and {} wide", data.median_height, data.median_width));
    return;
  }
  const int64_t side = std::min(data.median_height, data.median_width);
  const std::string median = core::format("median size {} x {}", data.median_width, data.median_height);
  const bool small = side > 0 && side <= kSmallImage;
  draft.choose(draft.options().data.img_size, std::to_string(small ? side : 224), median);
}

/// Augmentation of images does not hold for numbers in rows and columns: frequency is
/// not time, and time has a direction.
void leave_as_they_are(Draft& draft) {
  const std::string reason = "samples have a fixed size";
  draft.choose(draft.options().augment.train_crop, "none", reason);
  draft.choose(draft.options().augment.hflip, "0", reason);
}

/// Small gray images are mostly of things that were cut out and centred; shifts cost accuracy in few epochs: 3,000 of
/// Fashion-MNIST in 10 epochs 85.7 %, without 86.3; 8,000 of CIFAR-10 in 12, in colour, 69.0, without 67.3.
void choose_crops(Draft& draft) {
  constexpr int64_t kFewEpochs = 20;
  const ImageSize image = draft.options().data.img_size.value();
  const int64_t size = image.short_side(), epochs = draft.options().train.epochs;
  const bool small = image.long_side() < kSmallImage;
  const std::string reason = core::format("{} pixels", image_size_text(image));
  if (small && draft.options().data.in_chans.value() == 1 && epochs <= kFewEpochs) {
    draft.choose(draft.options().augment.train_crop, "center",
                 core::format("gray images of {}, at most {} epochs", reason, kFewEpochs));
  }
  draft.choose(draft.options().augment.train_crop, small ? "padded" : "random-resized", reason);
  draft.choose(draft.options().augment.crop_padding,
               std::to_string(size <= 28   ? 2
                              : size <= 32 ? 4
                                           : size / 8),
               reason);
  draft.choose(draft.options().augment.crop_pct, small ? "1" : "0.875", reason);
}

/// Six digits are more than a sample of the data justifies.
std::string rounded_list_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ",") + core::format("{:.6g}", value);
  return text;
}

void choose_input_range(Draft& draft, const DataFacts& data) {
  const Auto<std::vector<double>>& option = draft.options().data.input_range;
  const bool has_range = data.range_high > data.range_low;
  const std::string measured = has_range ? rounded_list_text({data.range_low, data.range_high}) : "full";
  const std::string reason = core::format("0.1 and 99.9 % of the numbers of {} images with more than 8 bits lie below",
                                          core::count_text(data.wide_images));
  if (!option.is_auto() && option.value() == kPercentiles && data.of_training) {
    draft.replace(option, measured, has_range ? reason : "no image has more than 8 bits");
  }
  if (has_range && data.has_narrow_range) {
    draft.choose(option, measured, reason);
  } else {
    draft.choose(option, "full", "of 8 bits, or of numbers that fill their range");
  }
}

void choose_normalization(Draft& draft, const DataFacts& data) {
  const bool is_measured = data.input_samples > 0;
  const auto channels = static_cast<size_t>(draft.options().data.in_chans.value());
  const std::vector<double> mean = is_measured ? data.input_mean : for_channels(data.input_mean, channels);
  std::vector<double> deviation = is_measured ? data.input_deviation : for_channels(data.input_deviation, channels);
  if (!mean.empty() && !deviation.empty()) {
    const std::string measured =
        is_measured ? core::format("measured on {} samples of the training split", core::count_text(data.input_samples))
                    : "of the run that the weights come from";
    for (double& value : deviation) value = value > 0 ? value : 1;
    draft.choose(draft.options().data.mean, rounded_list_text(mean), measured);
    draft.choose(draft.options().data.std, rounded_list_text(deviation), measured);
    return;
  }
  const bool rgb = draft.options().data.in_chans.value() == 3;
  const std::string reason = rgb ? "ImageNet's, for 3 channels" : "for 1 channel";
  draft.choose(draft.options().data.mean, rgb ? "0.485,0.456,0.406" : "0.5", reason);
  draft.choose(draft.options().data.std, rgb ? "0.229,0.224,0.225" : "0.25", reason);
}

constexpr int64_t kEnoughUpdates = 250;  // for one-cycle
constexpr double kOneCycleBase = 0.4;    // per 256 images; where one-cycle was chosen for small images
constexpr double kAdamRate = 0.001;      // for 256 images
constexpr double kNumbersRate = 0.002;   // for 256 images; where adamw was chosen

/// Real numbers are learned better with adamw: 10 epochs of made heads end at 5.0 degrees, against 8.1 with sgd, and
/// those of a table at an R2 of 96 %, against 93 (scripts/bench/defaults_vs_recipes.py, docs/dev/performance-log.md).
void choose_optimizer(Draft& draft, const Facts& facts) {
  const Options& o = draft.options();
  if (has_scaled_targets(o.data.task)) draft.choose(o.optim.opt, "adamw", "for task " + task_name(o.data.task));
  draft.choose(o.optim.opt, "sgd", "usual");
  const auto is = [kind = o.optim.opt.value()](OptimizerKind one) { return kind == one; };
  if (is(OptimizerKind::muon) && !facts.names_momentum) draft.replace(o.optim.momentum, "0.95", "usual for muon");
  if (o.optim.momentum == 0 && !facts.names_nesterov) draft.replace(o.optim.nesterov, "false", "momentum is 0");
  if (is(OptimizerKind::lamb) && !facts.names_eps) draft.replace(o.optim.eps, "1e-06", "usual for lamb");
  if ((is(OptimizerKind::lion) || is(OptimizerKind::rmsprop)) && !facts.names_betas) {
    draft.replace(o.optim.beta2, "0.9,0.99", is(OptimizerKind::lion) ? "usual for lion" : "PyTorch's alpha of rmsprop");
  }
}

/// For 256 images. Lion's steps have the size of the rate whatever the gradient, LAMB's are shares of the weights.
double adaptive_rate(OptimizerKind kind) {
  return kind == OptimizerKind::lion ? 0.0001 : kind == OptimizerKind::lamb ? 0.003 : kAdamRate;
}

/// Not more than there are: a batch beyond the data set has all of it. `train_images`: 0 while that is not known.
int64_t images_per_update(const Options& o, int64_t train_images) {
  const int64_t requested = o.loader.batch_size.value() * o.train.accumulation_steps.value() * o.train.replicas.value();
  return train_images > 0 ? std::min(requested, train_images) : requested;
}

/// Small images learn most in few epochs where the rate goes high and comes back: 8,000 of CIFAR-10 in 12 epochs 70 %,
/// against 64 % with cosine. In fewer updates than these the high rate does harm: 900 images in 10 epochs 53 %, against
/// 56 % (scripts/bench/defaults_vs_recipes.py, docs/dev/performance-log.md).
void choose_schedule(Draft& draft, const DataFacts& data) {
  const Options& o = draft.options();
  const bool is_small = o.data.img_size.value().long_side() <= kSmallImage;
  const bool can_cycle = o.optim.opt.value() == OptimizerKind::sgd && o.optim.momentum > 0;
  const bool has_own_shape = o.schedule.warmup_epochs > 0 || o.schedule.warmup_lr > 0 || o.schedule.min_lr > 0;
  const int64_t updates =
      o.train.epochs * (data.train_images / std::max<int64_t>(images_per_update(o, data.train_images), 1));
  if (is_small && can_cycle && !has_own_shape && updates >= kEnoughUpdates) {
    draft.choose(o.schedule.sched, "one-cycle",
                 core::format("images of up to {} pixels, {} updates", kSmallImage, core::count_text(updates)));
  }
  draft.choose(o.schedule.sched, "cosine", "usual");
  draft.set_default(draft.options().schedule.cooldown, static_cast<double>(o.train.epochs) / 5);
}

/// Adam's steps do not grow with the gradient: its users begin at 0.001 for 256 images and scale by the square root.
/// For numbers twice that is better: 5.0 degrees, against 6.2. `is_own_adamw`, `cycles_by_itself`: adamw, one-cycle is
/// our choice.
void choose_lr(Draft& draft, int64_t update_images, bool names_lr_base, bool is_own_adamw, bool cycles_by_itself) {
  const Options& o = draft.options();
  const auto images = static_cast<double>(update_images);
  if (o.optim.opt.value() != OptimizerKind::sgd && !names_lr_base) {
    const OptimizerKind kind = o.optim.opt.value();
    const bool is_adam = kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
    const double rate = is_own_adamw ? kNumbersRate : adaptive_rate(kind);
    draft.choose(o.optim.lr, core::format("{:.6g}", rate * std::sqrt(images / 256)),
                 core::format("{} x the square root of {} images / 256, {}", rate, images,
                              is_own_adamw ? "for adamw and numbers"
                              : is_adam    ? "usual for adam and adamw"
                                           : "usual for this optimizer"));
  }
  const bool goes_high = cycles_by_itself && !names_lr_base;
  const double base = goes_high ? kOneCycleBase : o.optim.lr_base;
  draft.choose(o.optim.lr, number_text(base * images / 256),
               goes_high
                   ? core::format("{} x {} images / 256, for one-cycle and small images", number_text(base), images)
                   : core::format("lr-base {} x {} images / 256", number_text(base), images));
}

}  // namespace

void choose_for_data(const DataFacts& data, Draft& draft) {
  refuse_training_options(draft, data);
  note_recognised_clips(draft, data);
  choose_shape(draft, data);
  choose_target_scale(draft, data);
  choose_weights(draft, data);
  if (data.has_fixed_size) leave_as_they_are(draft);
  if (draft.options().data.task == TaskKind::regression) {
    draft.choose(draft.options().augment.hflip, "0", "the mirror image may have other numbers");
  }
  draft.set_default(draft.options().augment.hflip, 0.5);
  choose_crops(draft);
  choose_input_range(draft, data);
  choose_normalization(draft, data);
}

void choose_optimization(const Options& given, const Facts& facts, bool batch_is_assumed, Draft& draft) {
  draft.assume(false);
  choose_optimizer(draft, facts);
  draft.assume(batch_is_assumed || !facts.data);
  const DataFacts data = facts.data.value_or(usual_data(given));
  choose_schedule(draft, data);
  const bool may_cycle = given.schedule.sched.is_auto();
  draft.assume(batch_is_assumed || (may_cycle && !facts.names_lr_base && !facts.data));
  const Options& chosen = draft.options();
  choose_lr(draft, images_per_update(chosen, data.train_images), facts.names_lr_base,
            given.optim.opt.is_auto() && chosen.optim.opt.value() == OptimizerKind::adamw,
            may_cycle && chosen.schedule.sched.value() == ScheduleKind::one_cycle);
  draft.assume(false);
}

}  // namespace stoker::config
