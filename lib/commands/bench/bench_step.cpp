// SPDX-License-Identifier: Apache-2.0
// `train bench step`: optimizer updates on one batch of noise that stays on the device.
#include "commands/bench/bench_rounds.h"
#include "core/format.h"
#include "core/time/clock.h"
#include "engine/device/device.h"
#include "engine/probe/probe_input.h"
#include "engine/probe/training_speed.h"
#include "engine/step/updater.h"
#include "model/model.h"
#include "train/setup/assemble.h"
#include "train/setup/backend.h"
#include "train/setup/compute_choices.h"

namespace stoker::train {
namespace {

constexpr double kCudaUpdatesPerRound = 50;

/// The frames of a clip; 1 for single images.
int64_t frames_of(const config::ResolvedOptions& options) {
  const bool sees_clips = options.data.dataset == config::DatasetType::clips && model::takes_clips(options.model.model);
  return sees_clips ? options.data.clip_frames : 1;
}

/// Noise on the device, as the feed would hand it over.
engine::ProbeSettings noise_of(const config::ResolvedOptions& options) {
  const config::ImageSize size = options.data.img_size;
  const int64_t frames = frames_of(options);
  engine::ProbeSettings settings;
  settings.input = {options.data.in_chans, size.height, size.width};
  if (frames > 1) settings.input.insert(settings.input.begin(), frames);
  settings.num_classes = options.data.num_classes;
  settings.channels_last = options.precision.channels_last;
  return settings;
}

}  // namespace

void decide_arithmetic(Settings& settings) {
  const config::ResolvedOptions& options = settings.options();
  const torch::Device device = open_and_configure_device(options);
  NetworkUse use = benchmark_use(options, noise_of(options).input);
  use.tries_precisions = tries_precisions(settings);
  prove_backend(options, use);
  engine::Learner learner = build_learner(options, device);
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  const TriedRun tried{settings, learner, *task, [&] { return noise_of(options); },
                       [&](const TriedRun::Variation& variation) {
                         config::ResolvedOptions varied = options;
                         varied.precision.channels_last = variation.channels_last;
                         if (variation.only_tried) varied.model.init_from.clear();
                         return build_learner(varied, device);
                       }};
  measure_amp(tried);
  measure_layout(tried);
  measure_threads(tried);
}

BenchResult bench_step(const config::ResolvedOptions& options, const BenchEffort& effort) {
  const torch::Device device = open_and_configure_device(options);
  const engine::Precision precision = precision_of(options, device);
  prove_backend(options, benchmark_use(options, noise_of(options).input));
  engine::Learner learner = build_learner(options, device);
  learner.model->train();
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  const auto graphs = graph_runner_for(options, device);  // auto measures a whole run: here only --graphs on has them
  engine::Updater updater(updater_settings(options, precision), *task, learner, /*timer=*/nullptr, engine::alone(),
                          graphs.get());
  engine::RepeatedBatch batches(
      engine::noise_batch(noise_of(options), options.loader.batch_size, options.data.img_size.long_side(), device));
  engine::UpdateWindow window;
  window.batch_size = options.loader.batch_size;
  window.batch_count = options.train.accumulation_steps * options.train.replicas;
  window.replicas = options.train.replicas;
  window.planned_images = window.batch_size * window.batch_count;
  const auto update = [&] { updater.update(batches, window, options.optim.lr); };

  for (int i = 0; i < effort.warm_up_updates; ++i) update();
  std::vector<double> rates;  // images/s
  for (int round = 0; round < effort.rounds; ++round) {
    engine::synchronize(device);
    const BenchClock::time_point begin = BenchClock::now();
    double updates = 0;
    do {
      update();
      ++updates;
      if (device.is_cuda() && updates >= kCudaUpdatesPerRound) break;  // the clock runs ahead of the device
    } while (device.is_cuda() || core::seconds_since(begin) < effort.seconds_per_round);
    engine::synchronize(device);
    rates.push_back(updates * static_cast<double>(window.planned_images) / core::seconds_since(begin));
  }

  BenchResult result;
  result.images_per_second = spread_of(rates);
  const engine::DeviceMemory memory = engine::device_memory(device);
  result.figures = {{"images_per_second", json_of(result.images_per_second)},
                    {"model", options.model.model},
                    {"batch_size", options.loader.batch_size},
                    {"accumulation_steps", options.train.accumulation_steps},
                    {"replicas", options.train.replicas},
                    {"img_size", json_of(options.data.img_size)},
                    {"clip_frames", frames_of(options)},
                    {"device", options.device.device},
                    {"precision", precision_text(options, precision)},
                    {"peak_device_bytes", memory.peak_bytes}};
  const std::string replicas =
      options.train.replicas == 1 ? "" : core::format(" x {} replicas", options.train.replicas);
  result.lines.push_back(core::format(
      "step: {} batch {} x {}{} at {} px on {}, {}: {}{}", options.model.model, options.loader.batch_size,
      options.train.accumulation_steps, replicas, config::image_size_text(options.data.img_size), options.device.device,
      precision_text(options, precision), text_of(result.images_per_second, "images/s"),
      memory.peak_bytes > 0 ? ", peak " + core::bytes_text(static_cast<double>(memory.peak_bytes)) : ""));
  return result;
}

// The end-to-end part of `train bench all`: updates on batches that the loader makes meanwhile.

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
