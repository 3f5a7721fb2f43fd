// SPDX-License-Identifier: Apache-2.0
// From resolved options to how updates are made: settings of updates and of the trainer, and who records updates for
// --graphs.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "model/script/network_library.h"
#include "train/setup/assemble.h"

namespace stoker::train {

std::string graphs_obstacle(const config::ResolvedOptions& options, const std::string& of_device) {
  if (!of_device.empty()) return of_device;
  if (options.train.replicas > 1) return "an update has several replicas";
  if (options.model.grad_checkpointing) return "--grad-checkpointing reads random states of the host while it computes";
  if (model::is_network_file(options.model.model)) return "a network in a file may decide on the host what it computes";
  return "";
}

std::unique_ptr<engine::GraphRunner> graph_runner_for(const config::ResolvedOptions& options, torch::Device device) {
  if (options.device.graphs == config::Graphs::off) return nullptr;
  const std::string obstacle = graphs_obstacle(options, engine::graph_obstacle(device));
  if (obstacle.empty()) return engine::make_graph_runner(device);
  if (options.device.graphs == config::Graphs::on) {
    throw core::Error(core::ErrorKind::config, "graphs on is not possible: " + obstacle,
                      "leave --graphs out, or set --graphs off");
  }
  core::log_debug("graphs are off: {}", obstacle);
  return nullptr;
}

std::string graphs_text(const config::ResolvedOptions& options, torch::Device device) {
  if (options.device.graphs == config::Graphs::off) return "";
  if (!graphs_obstacle(options, engine::graph_obstacle(device)).empty()) return "";
  return options.device.graphs ? ", graphs" : ", graphs where they help";
}

namespace {

/// A new exchange does not compile until it has an order here.
engine::RankSum::Order order_of(config::Exchange exchange) {
  switch (exchange) {
    case config::Exchange::exact: return engine::RankSum::Order::exact;
    case config::Exchange::fast: return engine::RankSum::Order::fast;
  }
  throw core::Error(core::ErrorKind::bug, "no order of sums for this exchange");
}

/// A share of an epoch as the updates that it takes.
config::Interval in_updates(config::Interval interval, int64_t updates_per_epoch) {
  if (interval.unit != config::Interval::Unit::epochs || interval.amount >= 1) return interval;
  const double updates = std::round(interval.amount * static_cast<double>(updates_per_epoch));
  return config::Interval::updates(std::max(1.0, updates));
}

}  // namespace

engine::UpdateSettings update_settings(const config::ResolvedOptions& options, const engine::Precision& precision) {
  return {precision, options.optim.clip_grad, options.optim.clip_mode};
}

engine::UpdaterSettings updater_settings(const config::ResolvedOptions& options, const engine::Precision& precision) {
  const config::ResolvedAugmentOptions& augment = options.augment;
  return {
      update_settings(options, precision),
      {augment.mixup_alpha, augment.cutmix_alpha, augment.mixup_prob, augment.mixup_switch_prob, options.train.seed},
      options.train.seed,
      options.train.auto_micro_batch,
      order_of(options.device.exchange),
      options.device.overlap_exchange && !options.model.grad_checkpointing,
      options.device.graphs == config::Graphs::on};
}

engine::TrainerSettings trainer_settings(const config::ResolvedOptions& options, const engine::EpochPlan& plan,
                                         const engine::Precision& precision, double seconds_before) {
  engine::TrainerSettings settings;
  settings.plan = plan;
  settings.limits = limits_of(options, seconds_before);
  settings.updater = updater_settings(options, precision);
  settings.eval_metric = options.train.eval_metric;
  settings.min_delta = options.train.min_delta;
  settings.tta = options.train.tta;
  settings.val_every = options.train.val_every;
  settings.save_every = options.run.save_every;
  settings.report_every = in_updates(options.run.report_every, plan.updates());
  settings.telemetry.digest_every = options.run.digest_every;
  settings.telemetry.tries_graphs = !options.device.graphs;
  settings.skips = {options.precision.min_scale, options.precision.max_skipped};
  return settings;
}

}  // namespace stoker::train
