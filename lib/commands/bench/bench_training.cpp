// SPDX-License-Identifier: Apache-2.0
// The end-to-end part of `train bench all`: updates on batches that the loader makes meanwhile.
#include "commands/bench/bench_rounds.h"
#include "core/format.h"
#include "engine/probe/measured_training.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"

namespace stoker::train {
BenchResult bench_training(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source,
                           const BenchEffort& effort) {
  const torch::Device device = open_and_configure_device(options);
  prove_backend(options, benchmark_use(options, *source));
  engine::Learner learner = build_learner(options, device);
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  const auto feed = training_feed(options, source, device);
  engine::MeasuredTraining training(updater_settings(options, precision_of(options, device)), *task, learner, *feed,
                                    plan_epoch(options, feed->loader()), options.optim.lr);
  training.warm_up(effort.warm_up_updates);
  std::vector<double> rates, waits;
  for (int round = 0; round < effort.rounds; ++round) {
    const engine::MeasuredUpdates measured = training.measure(
        [&](const engine::MeasuredUpdates& so_far) { return so_far.seconds >= effort.seconds_per_round; });
    rates.push_back(measured.images_per_second());
    waits.push_back(100 * measured.data_wait_seconds / measured.seconds);
  }

  BenchResult result;
  result.images_per_second = spread_of(rates);
  const Spread wait = spread_of(waits);
  result.figures = {{"images_per_second", json_of(result.images_per_second)}, {"data_wait_percent", json_of(wait)}};
  result.lines.push_back(core::format("end to end: {}, {:.1f} % of the time waiting for data",
                                      text_of(result.images_per_second, "images/s"), wait.median));
  return result;
}

}  // namespace stoker::train
