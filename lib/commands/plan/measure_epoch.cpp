// SPDX-License-Identifier: Apache-2.0
#include "commands/plan/measure_epoch.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "core/format.h"
#include "core/long_step.h"
#include "core/system/stop_signal.h"
#include "core/time/clock.h"
#include "data/open_datasets.h"
#include "engine/device/device.h"
#include "engine/probe/training_speed.h"
#include "engine/step/step_timer.h"
#include "engine/task/evaluate.h"
#include "train/setup/assemble.h"

namespace stoker::train {
namespace {

constexpr double kTrainSeconds = 8, kEvalSeconds = 2;
constexpr double kFewSeconds = 1, kWholeEpochs = 3;  // so much is enough where epochs are short
constexpr int kWarmUpUpdates = 2;

using Clock = std::chrono::steady_clock;

/// The value of rank 0.
bool agreed(engine::Group& group, bool own) { return group.from_root(own ? "y" : "n") == "y"; }

/// The least value of any rank.
double least(engine::Group& group, double own) {
  for (const std::string& of_rank : group.gather(std::to_string(own))) own = std::min(own, std::atof(of_rank.c_str()));
  return own;
}

void measure_training(const config::ResolvedOptions& options, const data::Datasets& datasets, engine::Learner& learner,
                      const engine::Task& task, engine::Group& group, plan::EpochEstimate& estimate) {
  const torch::Device device = learner.device;
  const auto feed = training_feed(options, datasets.train, device, engine::share_of(group));
  const engine::EpochPlan plan = plan_epoch(options, feed->loader());
  estimate.train_images = plan.images;
  engine::StepTimer timer(device, feed->loader());
  engine::MeasuredTraining training(updater_settings(options, precision_of(options, device)), task, learner, *feed,
                                    plan, options.optim.lr, &timer, group);
  core::LongStep step("epoch     measuring training");
  training.warm_up(kWarmUpUpdates);
  timer.begin_epoch();
  const engine::MeasuredUpdates measured = training.measure([&](const engine::MeasuredUpdates& so_far) {
    step.set_done(core::counted(so_far.updates, "update"));
    const bool saw_epochs = static_cast<double>(so_far.images) >= kWholeEpochs * static_cast<double>(plan.images);
    return agreed(group, so_far.seconds >= (saw_epochs ? kFewSeconds : kTrainSeconds));
  });
  timer.end_epoch();
  estimate.updates_measured = measured.updates;
  estimate.images_per_second = measured.images_per_second();
  estimate.update_seconds = measured.seconds / static_cast<double>(measured.updates);
  estimate.exchange_seconds = least(group, timer.since_epoch_start().parts[engine::StepPart::exchange].mean_seconds);
  estimate.data_wait_share = std::clamp(measured.data_wait_seconds / measured.seconds, 0.0, 1.0);
  if (measured.images > 0) {
    estimate.epoch_seconds = static_cast<double>(estimate.train_images) / estimate.images_per_second;
  }
}

void measure_evaluation(const config::ResolvedOptions& options, const data::Datasets& datasets,
                        engine::Learner& learner, engine::Group& group, plan::EpochEstimate& estimate) {
  const auto feed = evaluation_feed(options, datasets.val, learner.device, engine::share_of(group));
  const engine::Precision precision = precision_of(options, learner.device);
  learner.model->eval();
  feed->begin_epoch(0);
  core::LongStep step("epoch     measuring evaluation");
  const Clock::time_point begin = Clock::now();
  double images = 0;
  for (data::Batch batch; core::seconds_since(begin) < kEvalSeconds && feed->next(batch);) {
    core::throw_if_stopped();
    if (batch.image_count() > 0) engine::infer(*learner.model, batch.images, precision, options.train.tta);
    images += static_cast<double>(batch.planned_images);
  }
  engine::synchronize(learner.device);
  const double own_images = static_cast<double>(datasets.val->size()) / static_cast<double>(group.size());
  if (images > 0) estimate.eval_seconds = core::seconds_since(begin) * own_images / images;
}

}  // namespace

plan::EpochEstimate measure_epoch(const config::ResolvedOptions& options, const data::Datasets& datasets,
                                  engine::Learner& learner, const engine::Task& task, engine::Group& group) {
  plan::EpochEstimate estimate;
  estimate.batch_size = options.loader.batch_size;
  estimate.epochs = options.train.epochs;
  measure_training(options, datasets, learner, task, group, estimate);
  if (datasets.has_validation) measure_evaluation(options, datasets, learner, group, estimate);
  return estimate;
}

}  // namespace stoker::train
