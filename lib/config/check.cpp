// SPDX-License-Identifier: Apache-2.0
#include "config/check.h"

#include <algorithm>
#include <cmath>

#include "config/parse_value.h"
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

bool is_whole(double value) {
  return value == std::floor(value);
}

void check_operations(const AugmentOptions& o, RuleBook& rules) {
  const std::vector<double>& rand = o.rand_augment;
  rules.require(
      rand.empty() || (rand.size() == 2 && is_whole(rand[0]) && is_whole(rand[1]) && rand[0] >= 1),
      core::format("rand-augment is {}: it takes the number of operations and their strength, as 2,9",
                   list_value_text(rand)));
  rules.require(rand.empty() || !o.trivial_augment,
                "rand-augment and trivial-augment choose from the same operations: set one of them");
  const std::vector<double>& jitter = o.color_jitter;
  rules.require(jitter.size() != 2 && jitter.size() <= 4,
                core::format("color-jitter has {} values: it takes 1, 3 or 4", jitter.size()));
  rules.require(jitter.size() != 4 || jitter[3] <= 0.5,
                core::format("the hue of color-jitter is {}, above 0.5, half a circle",
                             number_text(jitter.size() == 4 ? jitter[3] : 0)));
  rules.require(o.gaussian_blur_sigma_min <= o.gaussian_blur_sigma_max,
                core::format("gaussian-blur-sigma-min {} is above gaussian-blur-sigma-max {}",
                             number_text(o.gaussian_blur_sigma_min), number_text(o.gaussian_blur_sigma_max)));
  rules.require(o.gaussian_blur_kernel % 2 == 1,
                core::format("gaussian-blur-kernel must be odd, not {}", o.gaussian_blur_kernel));
}

void check_augment(const AugmentOptions& o, RuleBook& rules) {
  rules.require(o.scale_min <= o.scale_max, core::format("scale-min {} is above scale-max {}",
                                                         number_text(o.scale_min), number_text(o.scale_max)));
  rules.require(o.ratio_min <= o.ratio_max, core::format("ratio-min {} is above ratio-max {}",
                                                         number_text(o.ratio_min), number_text(o.ratio_max)));
  rules.require(o.mixup_prob == AugmentOptions().mixup_prob || o.mixup_alpha > 0 || o.cutmix_alpha > 0,
                "mixup-prob mixes nothing without mixup-alpha or cutmix-alpha");
  rules.require(
      o.mixup_switch_prob == AugmentOptions().mixup_switch_prob || (o.mixup_alpha > 0 && o.cutmix_alpha > 0),
      "mixup-switch-prob chooses between mixup-alpha and cutmix-alpha: set both above 0");
}

void check_schedule(const Options& options, RuleBook& rules) {
  const ScheduleOptions& o = options.schedule;
  const auto epochs = static_cast<double>(options.train.epochs);
  const double lr = options.optim.lr.value();
  const std::vector<double>& milestones = o.decay_milestones;
  rules.require(o.sched != ScheduleKind::multistep || !milestones.empty(),
                "sched multistep needs decay-milestones, such as 30,60,80");
  const bool increase = std::adjacent_find(milestones.begin(), milestones.end(),
                                           [](double a, double b) { return a >= b; }) == milestones.end();
  rules.require(increase, "decay-milestones must increase: " + list_value_text(milestones));
  rules.require(o.warmup_epochs < epochs || o.warmup_epochs == 0,
                core::format("warmup-epochs {} leaves nothing of {} epochs", number_text(o.warmup_epochs),
                             options.train.epochs));
  rules.require(o.min_lr <= lr,
                core::format("min-lr {} is above lr {}", number_text(o.min_lr), number_text(lr)));
  rules.require(o.warmup_lr <= lr,
                core::format("warmup-lr {} is above lr {}", number_text(o.warmup_lr), number_text(lr)));
  rules.require(o.sched != ScheduleKind::one_cycle || o.warmup_epochs == 0,
                "sched one-cycle has a warm-up of its own (one-cycle-pct-start): set warmup-epochs to 0");
}

void check_training(const Options& options, RuleBook& rules) {
  const OptimOptions& optim = options.optim;
  rules.require(optim.opt != OptimizerKind::sgd || !optim.nesterov || optim.momentum > 0,
                "nesterov needs momentum above 0: set momentum, or no-nesterov");
  const Interval::Unit val_unit = options.train.val_every.unit;
  rules.require(val_unit == Interval::Unit::epochs || val_unit == Interval::Unit::never,
                "val-every counts epochs: give it as 1e or 5e, or never");
  rules.require(options.train.patience == 0 || options.train.val_every.unit != Interval::Unit::never,
                "patience needs evaluations, but val-every is never");
  rules.require(options.data.val_fraction == 0 || options.data.val_split.is_auto(),
                "val-fraction and val-split both say what to evaluate on: set one of them");
}

void check_precision(const Options& options, RuleBook& rules) {
  const bool half_on_cpu = options.precision.amp && options.device.device == "cpu" &&
                           options.precision.amp_dtype.value() == AmpDtype::float16;
  rules.require(!half_on_cpu, "amp-dtype float16 does not run on the CPU: use bfloat16, or no amp");
}

void check_channels(const std::string& name, const std::vector<double>& values, int64_t channels,
                    RuleBook& rules) {
  rules.require(static_cast<int64_t>(values.size()) == channels,
                core::format("{} has {} value{}, but in-chans is {}", name, values.size(),
                             values.size() == 1 ? "" : "s", channels));
}

}  // namespace

std::vector<std::string> broken_rules(const Options& options) {
  RuleBook rules;
  check_augment(options.augment, rules);
  check_operations(options.augment, rules);
  check_schedule(options, rules);
  check_training(options, rules);
  check_precision(options, rules);
  return rules.take();
}

std::vector<std::string> broken_data_rules(const Options& options, const DataFacts& data) {
  RuleBook rules;
  check_channels("mean", options.data.mean, options.data.in_chans.value(), rules);
  check_channels("std", options.data.std, options.data.in_chans.value(), rules);
  rules.require(options.augment.gaussian_blur == 0 ||
                    options.augment.gaussian_blur_kernel < 2 * options.data.img_size.value(),
                core::format("gaussian-blur-kernel {} reaches beyond the mirrored border of {} pixels",
                             options.augment.gaussian_blur_kernel, options.data.img_size.value()));
  rules.require(options.data.num_classes.value() >= data.num_classes,
                core::format("num-classes is {}, but the data has {} classes",
                             options.data.num_classes.value(), data.num_classes));
  return rules.take();
}

}  // namespace stoker::config
