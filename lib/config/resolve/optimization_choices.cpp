// SPDX-License-Identifier: Apache-2.0
// How a run learns that does not say it: optimizer, schedule and learning rate, from task, data and images per update.
#include <algorithm>
#include <cmath>

#include "config/resolve/draft.h"
#include "config/table/parse_value.h"
#include "config/task_facts.h"
#include "core/format.h"

namespace stoker::config {
namespace {

constexpr int64_t kEnoughUpdates = 250;  // for one-cycle
constexpr double kOneCycleBase = 0.4;    // per 256 images; where one-cycle was chosen for small images
constexpr double kAdamRate = 0.001;      // for 256 images
constexpr double kNumbersRate = 0.002;   // for 256 images; where adamw was chosen

/// Real numbers are learned better with adamw: 10 epochs of made heads end at 5.0 degrees, against 8.1 with sgd, and
/// those of a table at an R2 of 96 %, against 93 (scripts/bench/defaults_vs_recipes.py, docs/benchmarks.md).
void choose_optimizer(Draft& draft) {
  const Options& o = draft.options();
  if (has_scaled_targets(o.data.task)) draft.choose(o.optim.opt, "adamw", "for task " + task_name(o.data.task));
  draft.choose(o.optim.opt, "sgd", "usual");
}

/// Not more than there are: a batch beyond the data set has all of it. `train_images`: 0 while that is not known.
int64_t images_per_update(const Options& o, int64_t train_images) {
  const int64_t asked = o.loader.batch_size.value() * o.train.accumulation_steps.value() * o.train.replicas.value();
  return train_images > 0 ? std::min(asked, train_images) : asked;
}

/// Small images learn most in few epochs where the rate goes high and comes back: 8,000 of CIFAR-10 in 12 epochs 70 %,
/// against 64 % with cosine. In fewer updates than these the high rate does harm: 900 images in 10 epochs 53 %, against
/// 56 % (scripts/bench/defaults_vs_recipes.py, docs/benchmarks.md).
void choose_schedule(Draft& draft, const DataFacts& data) {
  const Options& o = draft.options();
  const bool is_small = o.data.img_size.value() <= kSmallImage;
  const bool can_cycle = o.optim.opt.value() == OptimizerKind::sgd && o.optim.momentum > 0;
  const bool has_own_shape = o.schedule.warmup_epochs > 0 || o.schedule.warmup_lr > 0 || o.schedule.min_lr > 0;
  const int64_t updates =
      o.train.epochs * (data.train_images / std::max<int64_t>(images_per_update(o, data.train_images), 1));
  if (is_small && can_cycle && !has_own_shape && updates >= kEnoughUpdates) {
    draft.choose(o.schedule.sched, "one-cycle",
                 core::format("images of up to {} pixels, {} updates", kSmallImage, core::count_text(updates)));
  }
  draft.choose(o.schedule.sched, "cosine", "usual");
}

/// Adam's steps do not grow with the gradient: its users begin at 0.001 for 256 images and scale by the square root.
/// For numbers twice that is better: 5.0 degrees, against 6.2. `is_own_adamw`, `cycles_by_itself`: adamw, one-cycle is
/// our choice.
void choose_lr(Draft& draft, int64_t update_images, bool names_lr_base, bool is_own_adamw, bool cycles_by_itself) {
  const Options& o = draft.options();
  const auto images = static_cast<double>(update_images);
  if (o.optim.opt.value() != OptimizerKind::sgd && !names_lr_base) {
    const double rate = is_own_adamw ? kNumbersRate : kAdamRate;
    draft.choose(o.optim.lr, core::format("{:.6g}", rate * std::sqrt(images / 256)),
                 core::format("{} x the square root of {} images / 256, {}", rate, images,
                              is_own_adamw ? "for adamw and numbers" : "usual for adam and adamw"));
  }
  const bool goes_high = cycles_by_itself && !names_lr_base;
  const double base = goes_high ? kOneCycleBase : o.optim.lr_base;
  draft.choose(o.optim.lr, number_text(base * images / 256),
               goes_high
                   ? core::format("{} x {} images / 256, for one-cycle and small images", number_text(base), images)
                   : core::format("lr-base {} x {} images / 256", number_text(base), images));
}

}  // namespace

void choose_optimization(const Options& given, const Facts& facts, bool batch_is_assumed, Draft& draft) {
  draft.assume(false);
  choose_optimizer(draft);
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
