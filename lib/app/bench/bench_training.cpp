// SPDX-License-Identifier: Apache-2.0
// The end-to-end part of `train bench all`: updates on batches that the loader makes meanwhile.
#include "app/bench/bench.h"
#include "app/setup/assemble.h"
#include "core/format.h"
#include "core/time/elapsed.h"
#include "engine/device/device.h"
#include "engine/step/updater.h"

namespace stoker::app {
BenchResult bench_training(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source,
                           const BenchEffort& effort) {
  const torch::Device device = open_and_configure_device(options);
  engine::Learner learner = build_learner(options, device);
  learner.model->train();
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  engine::Updater updater(updater_settings(options, precision_of(options, device)), *task, learner);
  const auto feed = training_feed(options, source, device);
  engine::EndlessUpdates updates(updater, *feed, plan_epoch(options, feed->loader()));
  int64_t images = 0;
  const auto update = [&] { images += updates.update(options.optim.lr); };

  for (int i = 0; i < effort.warm_up_updates; ++i) update();
  std::vector<double> rates, waits;
  for (int round = 0; round < effort.rounds; ++round) {
    engine::synchronize(device);
    const double waited_before = feed->loader().stats().consumer_wait_seconds;
    const BenchClock::time_point begin = BenchClock::now();
    images = 0;
    do update();
    while (core::seconds_since(begin) < effort.seconds_per_round);
    engine::synchronize(device);
    const double seconds = core::seconds_since(begin);
    rates.push_back(static_cast<double>(images) / seconds);
    waits.push_back(100 * (feed->loader().stats().consumer_wait_seconds - waited_before) / seconds);
  }

  BenchResult result;
  result.images_per_second = spread_of(rates);
  const Spread wait = spread_of(waits);
  result.figures = {{"images_per_second", json_of(result.images_per_second)}, {"data_wait_percent", json_of(wait)}};
  result.lines.push_back(core::format("end to end: {}, {:.1f} % of the time waiting for data",
                                      text_of(result.images_per_second, "images/s"), wait.median));
  return result;
}

}  // namespace stoker::app
