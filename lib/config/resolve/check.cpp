// SPDX-License-Identifier: Apache-2.0
// Rules that span options.

#include <algorithm>
#include <cmath>

#include "config/resolve/draft.h"
#include "config/table/parse_value.h"
#include "config/task_facts.h"
#include "core/format.h"

namespace stoker::config {
namespace {

/// Collects the sentences of rules that do not hold.
class RuleBook {
 public:
  void require(bool holds, const std::string& sentence) {
    if (!holds) broken_.push_back(sentence);
  }
  std::vector<std::string> take() { return std::move(broken_); }

 private:
  std::vector<std::string> broken_;
};

void check_operations(const ResolvedAugmentOptions& o, RuleBook& rules) {
  const std::vector<double>& jitter = o.color_jitter;
  rules.require(jitter.size() != 2 && jitter.size() <= 4,
                core::format("color-jitter has {} values: it takes 1, 3 or 4", jitter.size()));
  rules.require(jitter.size() != 4 || jitter[3] <= 0.5,
                core::format("the hue of color-jitter is {}, above 0.5, half a circle",
                             number_text(jitter.size() == 4 ? jitter[3] : 0)));
  rules.require(o.gaussian_blur_sigma_min <= o.gaussian_blur_sigma_max,
                core::format("gaussian-blur has a deviation of {} to {}: the first is larger",
                             number_text(o.gaussian_blur_sigma_min), number_text(o.gaussian_blur_sigma_max)));
  rules.require(o.gaussian_blur_kernel % 2 == 1,
                core::format("the kernel of gaussian-blur must be odd, not {}", o.gaussian_blur_kernel));
}

void check_augment(const ResolvedAugmentOptions& o, RuleBook& rules) {
  rules.require(o.scale_min <= o.scale_max,
                core::format("scale {},{}: the first is larger", number_text(o.scale_min), number_text(o.scale_max)));
  rules.require(o.ratio_min <= o.ratio_max,
                core::format("ratio {},{}: the first is larger", number_text(o.ratio_min), number_text(o.ratio_max)));
  rules.require(o.affine_scale_min <= o.affine_scale_max,
                core::format("affine: the scale of at least {} is above the one of at most {}",
                             number_text(o.affine_scale_min), number_text(o.affine_scale_max)));
  rules.require(o.mixup_prob == ResolvedAugmentOptions().mixup_prob || o.mixup_alpha > 0 || o.cutmix_alpha > 0,
                "mixup-prob mixes nothing without mixup-alpha or cutmix-alpha");
  rules.require(
      o.mixup_switch_prob == ResolvedAugmentOptions().mixup_switch_prob || (o.mixup_alpha > 0 && o.cutmix_alpha > 0),
      "mixup-switch-prob chooses between mixup-alpha and cutmix-alpha: set both above 0");
}

bool is_count(const Interval& every) {
  return every.unit == Interval::Unit::epochs || every.unit == Interval::Unit::updates;
}

/// `lr_is_known`: an automatic one waits for an automatic batch-size.
void check_schedule(const ResolvedOptions& options, bool lr_is_known, RuleBook& rules) {
  const ResolvedScheduleOptions& o = options.schedule;
  const auto epochs = static_cast<double>(options.train.epochs);
  const std::vector<double>& milestones = o.decay_milestones;
  rules.require(o.sched != ScheduleKind::multistep || !milestones.empty(),
                "sched multistep needs decay-milestones, such as 30,60,80");
  const bool increase = std::adjacent_find(milestones.begin(), milestones.end(),
                                           [](double a, double b) { return a >= b; }) == milestones.end();
  rules.require(increase, "decay-milestones must increase: " + list_value_text(milestones));
  rules.require(o.warmup_epochs < epochs || o.warmup_epochs == 0,
                core::format("warmup-epochs {} leaves nothing of epochs {}: set it below, or to 0",
                             number_text(o.warmup_epochs), options.train.epochs));
  if (lr_is_known) {
    const double lr = options.optim.lr;
    rules.require(o.min_lr <= lr, core::format("min-lr {} is above lr {}", number_text(o.min_lr), number_text(lr)));
    rules.require(o.warmup_lr <= lr,
                  core::format("warmup-lr {} is above lr {}", number_text(o.warmup_lr), number_text(lr)));
  }
  rules.require(o.sched != ScheduleKind::wsd || o.warmup_epochs + o.cooldown <= epochs,
                core::format("warmup-epochs {} and cooldown {} are more than {} epochs", number_text(o.warmup_epochs),
                             number_text(o.cooldown), options.train.epochs));
  rules.require(
      o.sched != ScheduleKind::plateau ||
          (is_count(options.train.val_every) && options.data.val_split != kNoValidation),
      "sched plateau needs evaluations that do not depend on the clock: val-every 1e or 2000u, and validation "
      "data");
  rules.require(o.sched != ScheduleKind::one_cycle || o.warmup_epochs == 0,
                "sched one-cycle has a warm-up of its own (--one-cycle): set warmup-epochs to 0");
  if (o.sched != ScheduleKind::one_cycle || !o.one_cycle_momentum) return;
  const bool may_lack_momentum = options.optim.opt == OptimizerKind::sgd || options.optim.opt == OptimizerKind::rmsprop;
  rules.require(!may_lack_momentum || options.optim.momentum > 0,
                "one-cycle-momentum needs momentum above 0: set momentum, or one-cycle-momentum off");
  rules.require(o.one_cycle_base_momentum <= o.one_cycle_max_momentum,
                core::format("one-cycle-momentum {},{}: the first is larger", number_text(o.one_cycle_base_momentum),
                             number_text(o.one_cycle_max_momentum)));
}

void check_batch(const ResolvedOptions& options, const Facts& facts, RuleBook& rules) {
  const int64_t total = options.train.total_batch_size, steps = options.train.accumulation_steps;
  const int64_t replicas = options.train.replicas;
  const int64_t ranks = ranks_of(options.device.devices, facts);
  const std::string who =
      ranks == options.device.devices.count ? core::format("devices {}", ranks) : core::format("{} processes", ranks);
  rules.require(replicas % ranks == 0,
                core::format("replicas {} is not a multiple of {}: each computes as many", replicas, who));
  rules.require(
      !options.model.sync_bn || replicas <= ranks,
      core::format("sync-bn needs a process for each replica, but {} compute {}: set devices {}, or leave it out", who,
                   replicas, replicas));
  if (total == 0) return;
  const int64_t batch = options.loader.batch_size;
  if (replicas > 1) {
    rules.require(batch * steps * replicas == total,
                  core::format("total-batch-size {} is not batch-size {} x accumulation-steps {} x replicas {}", total,
                               batch, steps, replicas));
    return;
  }
  rules.require(
      batch * steps == total,
      total % batch == 0
          ? core::format("total-batch-size {} is not batch-size {} x accumulation-steps {}: leave one of them out",
                         total, batch, steps)
          : core::format("total-batch-size {} is not a multiple of batch-size {}", total, batch));
}

void check_training(const ResolvedOptions& options, RuleBook& rules) {
  const ResolvedOptimOptions& optim = options.optim;
  rules.require(optim.opt != OptimizerKind::sgd || !optim.nesterov || optim.momentum > 0,
                "nesterov needs momentum above 0: set momentum, or no-nesterov");
  rules.require(options.model.freeze_for.unit != Interval::Unit::seconds,
                "freeze-for counts epochs or updates, since results must not depend on time: give it as 2e or 500u");
  const bool thaws = options.model.freeze_for.unit != Interval::Unit::never;
  rules.require(options.model.lora == 0 || !thaws,
                "lora keeps weights frozen, which freeze-for lets learn: leave one of them out");
  rules.require(options.model.lora == 0 || options.run.average_last == 0,
                "average-last averages weights, of which lora learns factors: leave one of them out, or use model-ema");
  const TrainOptionsOf<Auto> usual;
  const bool is_usual = options.train.distill_share == usual.distill_share &&
                        options.train.distill_temperature == usual.distill_temperature;
  rules.require(!options.model.teacher.empty() || is_usual, "distill needs a teacher: set teacher RUN");
  rules.require(options.model.teacher.empty() || options.data.task == TaskKind::multiclass,
                "teacher gives probabilities of classes: it is for the task multiclass");
  rules.require(!options.model.sync_bn || !options.train.auto_micro_batch,
                "sync-bn sees whole batches, which auto-micro-batch divides: leave one of them out");
  const bool has_validation = options.data.val_split != kNoValidation;
  rules.require(
      options.train.patience == 0 || (options.train.val_every.unit != Interval::Unit::never && has_validation),
      core::format("patience needs evaluations, but val-{}", has_validation ? "every is never" : "split is none"));
  rules.require(options.run.keep_every.unit == Interval::Unit::never || is_count(options.run.keep_every),
                "keep-every counts epochs or updates, as in 10e or 5000u");
  rules.require(options.run.average_last == 0 || is_count(options.run.save_every),
                "average-last needs checkpoints that do not depend on the clock: save-every 1e or 2000u");
  const bool has_folds = options.data.val_split && options.data.val_split->rfind("fold:", 0) == 0;
  rules.require(options.data.val_fraction > 0 || has_folds || options.data.group == kNoGroups,
                "group keeps groups on one side of val-fraction or of folds: set val-fraction, such as 0.1");
  rules.require(options.data.val_fraction == 0 || !options.data.val_split,
                "val-fraction and val-split both set what to evaluate on: leave one of them out");
}

/// `has_network`: poses can be looked at and packed as any other images.
void check_task(const Options& given, const ResolvedOptions& options, bool has_network, RuleBook& rules) {
  const TaskKind task = options.data.task;
  const std::string name = task_name(task);
  const std::vector<EvalMetric>& metrics = eval_metrics_of(task);
  std::string known;
  for (const EvalMetric metric : metrics) known += (known.empty() ? "" : ", ") + eval_metric_name(metric);
  const EvalMetric chosen = options.train.eval_metric;
  rules.require(
      std::find(metrics.begin(), metrics.end(), chosen) != metrics.end(),
      core::format("eval-metric {} is not computed for task {}, which has {}", eval_metric_name(chosen), name, known));
  const std::vector<LossKind>& losses = losses_of(task);
  std::string usable;
  for (const LossKind loss : losses) usable += (usable.empty() ? "" : ", ") + loss_name(loss);
  const Loss& loss = options.task.loss;
  rules.require(std::find(losses.begin(), losses.end(), loss.kind) != losses.end(),
                core::format("loss {} is not for task {}, which has {}", loss_name(loss.kind), name, usable));
  rules.require(loss.kind != LossKind::bce || loss.numbers.empty() || task == TaskKind::multiclass,
                core::format("the threshold of loss bce is for the task multiclass, but the task is {}", name));
  const bool is_pose_data = options.data.dataset == DatasetType::biwi || options.data.dataset == DatasetType::w300lp;
  rules.require(!is_pose_data || task == TaskKind::head_pose || !has_network,
                core::format("dataset biwi and 300wlp hold head poses, but the task is {}: add task head-pose", name));
  const ResolvedAugmentOptions& augment = options.augment;
  rules.require((augment.mixup_alpha == 0 && augment.cutmix_alpha == 0) || !has_scaled_targets(task),
                core::format("mixup and cutmix share labels, but task {} learns numbers", name));
  rules.require(
      options.train.tta == TestTimeAugmentation::none || !has_scaled_targets(task),
      core::format("tta averages over mirror images or crops, but the numbers that task {} learns may be others for "
                   "them: set tta none",
                   name));
  rules.require(crops_of(options.train.tta) == 1 || augment.eval_crop == EvalCrop::center,
                "tta ten-crop and scales cut parts out of the resized image: set eval-crop center, or tta hflip");
  const bool turns = augment.vflip > 0 || augment.rotate90 > 0 || augment.rotation > 0 || is_affine(augment) ||
                     augment.perspective > 0 || !augment.rand_augment.empty() ||
                     (augment.policy != AugmentPolicy::none && augment.policy != AugmentPolicy::three_augment);
  rules.require(
      !turns || task != TaskKind::head_pose,
      "vflip, rotate90, rotation, affine, perspective and auto-augment move heads without their angles: not for "
      "task head-pose");
  rules.require(options.train.label_smoothing == 0 || !has_scaled_targets(task),
                core::format("label-smoothing has no meaning for task {}", name));
  const auto is_set = [](const Auto<std::vector<double>>& list) { return list.is_auto() || !list.value().empty(); };
  rules.require(!is_set(given.task.class_weights) || task == TaskKind::multiclass,
                core::format("class-weights is for the task multiclass, but the task is {}", name));
  rules.require(!options.loader.class_balanced || !is_numeric_task(task),
                core::format("class-balanced needs a class per image, but the task is {}", name));
  rules.require(!is_set(given.task.pos_weight) || task == TaskKind::binary || task == TaskKind::multilabel,
                core::format("pos-weight is for the tasks binary and multilabel, but the task is {}", name));
}

/// A list has one value for all targets, or one each.
void check_per_target(const std::string& name, const std::vector<double>& values, int64_t targets, RuleBook& rules) {
  const auto count = static_cast<int64_t>(values.size());
  rules.require(count <= 1 || count == targets,
                core::format("{} has {} values, but there {} {} target{}", name, count, targets == 1 ? "is" : "are",
                             targets, targets == 1 ? "" : "s"));
}

void check_task_data(const ResolvedOptions& options, const DataFacts& data, RuleBook& rules) {
  const int64_t outputs = options.data.num_classes;
  const TaskKind task = options.data.task;
  if (task == TaskKind::multiclass) {
    const size_t weights = options.task.class_weights.size();
    rules.require(weights == 0 || static_cast<int64_t>(weights) == outputs,
                  core::format("class-weights has {} values, but there are {} classes", weights, outputs));
    rules.require(outputs >= data.num_classes,
                  core::format("num-classes is {}, but the data has {} classes", outputs, data.num_classes));
    return;
  }
  if (task == TaskKind::binary) {
    rules.require(data.num_classes == 2 && outputs == 2,
                  core::format("task binary needs two classes, but the data has {} and num-classes is {}",
                               data.num_classes, outputs));
  } else {
    rules.require(outputs == data.num_classes,
                  core::format("num-classes is {}, but the data has {} targets", outputs, data.num_classes));
  }
  check_per_target("pos-weight", options.task.pos_weight, task == TaskKind::binary ? 1 : outputs, rules);
  check_per_target("threshold", options.task.threshold, task == TaskKind::multilabel ? outputs : 1, rules);
  rules.require(!options.task.threshold.empty(), "threshold has no value");
  check_per_target("target-mean", options.task.target_mean, outputs, rules);
  check_per_target("target-scale", options.task.target_scale, outputs, rules);
}

void check_precision(const ResolvedOptions& options, bool cpu_computes_float16, RuleBook& rules) {
  const bool half_on_cpu =
      options.precision.amp && options.device.device == "cpu" && options.precision.amp_dtype == AmpDtype::float16;
  rules.require(!half_on_cpu || cpu_computes_float16,
                "amp float16 does not run on the CPU in this LibTorch: use amp bfloat16 or off, or LibTorch 2.4");
}

/// Samples of a fixed size reach the network unchanged.
void check_shape(const ResolvedOptions& options, const DataFacts& data, RuleBook& rules) {
  rules.require(options.train.tta == TestTimeAugmentation::none,
                "tta is for images, but samples of HDF5 and multi-band files are not changed: set tta none");
  const ImageSize given = {data.median_height, data.median_width}, size = options.data.img_size;
  rules.require(
      size == given || size == ImageSize{given.height, given.height},
      core::format(
          "img-size is {}, but samples of HDF5 and multi-band files are not resized; they are {} x {}: leave it out",
          image_size_text(size), given.height, given.width));
  rules.require(options.data.in_chans == data.channels,
                core::format("in-chans is {}, but the samples have {}", options.data.in_chans, data.channels));
}

/// Samples of a fixed size are taken as they are; masks and what mixes batches are all that may change them.
void check_fixed_size(const ResolvedOptions& options, const DataFacts& data, RuleBook& rules) {
  if (!data.has_fixed_size) return;
  check_shape(options, data, rules);
  const ResolvedAugmentOptions& o = options.augment;
  const auto refuse = [&](bool is_on, const std::string& name) {
    rules.require(
        !is_on,
        core::format("{} is for images, but samples of HDF5 and multi-band files are not augmented: only freq-mask, "
                     "time-mask, mixup and cutmix change them",
                     name));
  };
  refuse(o.train_crop != TrainCrop::none, "train-crop");
  refuse(o.hflip > 0, "hflip");
  refuse(o.vflip > 0, "vflip");
  refuse(o.rotate90 > 0, "rotate90");
  refuse(o.rotation > 0, "rotation");
  refuse(is_affine(o), "affine");
  refuse(o.perspective > 0, "perspective");
  refuse(!o.rand_augment.empty() || o.policy != AugmentPolicy::none, "auto-augment");
  refuse(!o.color_jitter.empty(), "color-jitter");
  refuse(o.grayscale > 0, "grayscale");
  refuse(o.gaussian_blur > 0, "gaussian-blur");
  refuse(o.gaussian_noise > 0, "gaussian-noise");
  refuse(o.random_erasing > 0, "random-erasing");
}

void check_channels(const std::string& name, const std::vector<double>& values, int64_t channels, RuleBook& rules) {
  rules.require(static_cast<int64_t>(values.size()) == channels,
                core::format("{} has {} value{}, but in-chans is {}", name, values.size(),
                             values.size() == 1 ? "" : "s", channels));
}

}  // namespace

std::vector<std::string> broken_rules(const Options& given, const Resolution& resolution, const Facts& facts) {
  const ResolvedOptions& options = resolution.options;
  const bool batch_is_known = !resolution.waits_for_batch;
  RuleBook rules;
  check_augment(options.augment, rules);
  check_operations(options.augment, rules);
  check_schedule(options, batch_is_known || !given.optim.lr.is_auto(), rules);
  if (batch_is_known) check_batch(options, facts, rules);
  check_training(options, rules);
  check_task(given, options, facts.has_network, rules);
  if (facts.has_network) check_precision(options, facts.machine.computes_float16, rules);
  return rules.take();
}

std::vector<std::string> broken_data_rules(const ResolvedOptions& options, const DataFacts& data) {
  RuleBook rules;
  check_channels("mean", options.data.mean, options.data.in_chans, rules);
  check_channels("std", options.data.std, options.data.in_chans, rules);
  const int64_t channels = options.data.in_chans;
  rules.require(data.has_fixed_size || channels == 1 || channels == 3,
                core::format("in-chans is {}, but images become gray (1) or RGB (3); samples of HDF5 and multi-band "
                             "TIFF files have any number of channels",
                             channels));
  check_task_data(options, data, rules);
  if (!data.of_training) {
    if (data.has_fixed_size) check_shape(options, data, rules);
    rules.require(crops_of(options.train.tta) == 1 || !data.has_videos,
                  "tta ten-crop and scales are for images, but the data are videos: set tta hflip or none");
    return rules.take();
  }
  check_fixed_size(options, data, rules);
  rules.require(options.augment.gaussian_blur == 0 ||
                    options.augment.gaussian_blur_kernel < 2 * options.data.img_size.short_side(),
                core::format("the kernel of gaussian-blur, {}, reaches beyond the mirrored border of {} pixels",
                             options.augment.gaussian_blur_kernel, options.data.img_size.short_side()));
  rules.require(options.augment.rotate90 == 0 || options.data.img_size.is_square(),
                core::format("rotate90 turns squares, but img-size is {}: set rotate90 0 or a square img-size",
                             image_size_text(options.data.img_size)));
  return rules.take();
}

}  // namespace stoker::config
