// SPDX-License-Identifier: Apache-2.0
// `train bench ablate`: training as it is configured, and without each of the things that make it fast, in turn.
#include <algorithm>
#include <functional>

#include "commands/bench/bench_rounds.h"
#include "core/format.h"
#include "engine/probe/training_speed.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"

namespace stoker::train {
namespace {

using core::format;

/// Training without one thing.
struct Ablation {
  std::string name;    ///< "mixed precision"
  std::string option;  ///< what turns it off; "": no option does
  config::ResolvedOptions options;
  std::shared_ptr<const data::Source> source;
  bool plain_optimizer = false;
  std::vector<double> rates = {}, slower = {};  ///< images/s; how many times as fast the whole is, in the same round
};

std::vector<Ablation> ablations_of(const config::ResolvedOptions& options, const AblatedData& data) {
  std::vector<Ablation> all;
  const auto without = [&](bool is_used, const std::string& name, const std::string& option,
                           const std::function<void(Ablation&)>& turn_off) {
    if (!is_used) return;
    all.push_back({name, option, options, data.as_configured});
    turn_off(all.back());
  };
  const bool on_cpu = options.device.device == "cpu";
  without(options.precision.amp, "mixed precision", "--no-amp", [](Ablation& a) { a.options.precision.amp = false; });
  without(options.precision.channels_last, "channels-last", "--no-channels-last",
          [](Ablation& a) { a.options.precision.channels_last = false; });
  without(on_cpu && options.device.threads > 1, format("{} threads", options.device.threads), "--threads 1",
          [](Ablation& a) { a.options.device.threads = 1; });
  without(true, on_cpu ? "optimizer in one pass" : "fused optimizer", "",
          [](Ablation& a) { a.plain_optimizer = true; });
  without(data.as_configured != data.uncached, "cache", "--cache none", [&](Ablation& a) { a.source = data.uncached; });
  without(options.loader.num_workers > 1, format("{} workers", options.loader.num_workers), "--num-workers 1",
          [](Ablation& a) { a.options.loader.num_workers = 1; });
  without(options.loader.num_workers > 0, "loading beside training", "--num-workers 0",
          [](Ablation& a) { a.options.loader.num_workers = 0; });
  without(options.loader.num_workers > 0 && options.loader.prefetch_factor > 1, "prefetch", "--prefetch-factor 1",
          [](Ablation& a) { a.options.loader.prefetch_factor = 1; });
  without(!on_cpu && options.loader.pin_memory, "pinned memory", "--no-pin-memory",
          [](Ablation& a) { a.options.loader.pin_memory = false; });
  return all;
}

/// A cache has all that it holds after one epoch.
void read_all(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source) {
  const auto loader = training_loader(options, source);
  loader->begin_epoch(0);
  data::HostBatch batch;
  while (loader->next(batch)) loader->release(batch);
}

/// Images per second, from a new start.
double rate_of(const Ablation& run, const BenchEffort& effort) {
  const config::ResolvedOptions& options = run.options;
  const torch::Device device = open_and_configure_device(options);
  prove_backend(options, benchmark_use(options, *run.source));
  engine::Learner learner = build_learner(options, device);
  if (run.plain_optimizer) learner.optimizer->use_plain_kernels();
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  const auto feed = training_feed(options, run.source, device);
  engine::MeasuredTraining training(updater_settings(options, precision_of(options, device)), *task, learner, *feed,
                                    plan_epoch(options, feed->loader()), options.optim.lr);
  training.warm_up(effort.warm_up_updates);
  return training
      .measure([&](const engine::MeasuredUpdates& so_far) { return so_far.seconds >= effort.seconds_per_round; })
      .images_per_second();
}

std::string table_line(const std::string& name, const std::string& option, const Spread& rate, const Spread* factor) {
  return format(
      "{:<32} {:<20} {:>9.1f} images/s  {}", name, option, rate.median,
      factor ? format("{:.2f} times ({:.2f} to {:.2f})", factor->median, factor->lowest, factor->highest) : "");
}

}  // namespace

BenchResult bench_ablate(const config::ResolvedOptions& options, const AblatedData& data, const BenchEffort& effort) {
  std::vector<Ablation> all = ablations_of(options, data);
  if (data.as_configured != data.uncached) read_all(options, data.as_configured);
  const Ablation whole{"as configured", "", options, data.as_configured};
  std::vector<double> rates;
  for (int round = 0; round < effort.rounds; ++round) {
    for (Ablation& one : all) {
      rates.push_back(rate_of(whole, effort));
      one.rates.push_back(rate_of(one, effort));
      one.slower.push_back(rates.back() / one.rates.back());
    }
  }

  BenchResult result;
  result.images_per_second = spread_of(rates);
  result.lines = {format("gain of each optimization: the rate without it, and how many times as fast training is with "
                         "it; {} rounds in "
                         "turn; {} batch {} at {} px on {}",
                         effort.rounds, options.model.model, options.loader.batch_size,
                         config::image_size_text(options.data.img_size), options.device.device),
                  table_line("as configured", "", result.images_per_second, nullptr)};
  core::Json parts = core::Json::array();
  for (const Ablation& one : all) {
    const Spread rate = spread_of(one.rates), factor = spread_of(one.slower);
    result.lines.push_back(table_line("without " + one.name, one.option, rate, &factor));
    parts.push_back({{"without", one.name},
                     {"option", one.option},
                     {"images_per_second", json_of(rate)},
                     {"factor", json_of(factor)}});
  }
  result.figures = {{"images_per_second", json_of(result.images_per_second)},
                    {"model", options.model.model},
                    {"batch_size", options.loader.batch_size},
                    {"img_size", json_of(options.data.img_size)},
                    {"device", options.device.device},
                    {"parts", parts}};
  return result;
}

}  // namespace stoker::train
