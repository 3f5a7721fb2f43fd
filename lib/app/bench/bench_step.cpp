// SPDX-License-Identifier: Apache-2.0
// `train bench step`: optimizer updates on one batch of noise that stays on the device.
#include "app/bench/bench.h"
#include "app/setup/assemble.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"
#include "engine/device/device.h"
#include "engine/step/update_step.h"
#include "model/model.h"

namespace stoker::app {
namespace {

constexpr double kCudaUpdatesPerRound = 50;

/// Of a clip; 1 for single images.
int64_t frames_of(const config::Options& options) {
  const bool sees_clips = options.data.dataset == config::DatasetType::clips && model::takes_clips(options.model.model);
  return sees_clips ? options.data.clip_frames : 1;
}

/// One batch of noise on the device, as the feed would hand it over.
data::Batch random_batch(const config::Options& options, torch::Device device) {
  const int64_t size = options.data.img_size, clips = options.loader.batch_size, frames = frames_of(options);
  data::Batch batch;
  batch.images = torch::randn({clips * frames, options.data.in_chans, size, size});
  if (options.precision.channels_last) batch.images = batch.images.contiguous(at::MemoryFormat::ChannelsLast);
  if (frames > 1) batch.images = batch.images.unflatten(0, {clips, frames});  // [clips, frames, C, H, W]
  batch.images = batch.images.to(device);
  const int64_t learned = options.data.num_classes;
  batch.labels = torch::randint(learned, {options.loader.batch_size.value()}, at::kLong).to(device);
  batch.targets = torch::randint(2, {options.loader.batch_size.value(), learned}, at::kFloat).to(device);
  batch.planned_images = options.loader.batch_size;
  return batch;
}

}  // namespace

BenchResult bench_step(const config::Options& options, const BenchEffort& effort) {
  const torch::Device device = open_and_configure_device(options);
  const engine::Precision precision = precision_of(options, device);
  engine::Learner learner = build_learner(options, device);
  learner.model->train();
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  engine::UpdateStep step(update_settings(options, precision), *task, learner);
  const data::Batch batch = random_batch(options, device);
  const int64_t images_in_update = batch.planned_images * options.train.accumulation_steps;
  const auto update = [&] {
    core::throw_if_stopped();
    for (int64_t i = 0; i < options.train.accumulation_steps; ++i) step.accumulate(batch, images_in_update);
    step.apply(options.optim.lr.value());
  };

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
    rates.push_back(updates * static_cast<double>(images_in_update) / core::seconds_since(begin));
  }

  BenchResult result;
  result.images_per_second = spread_of(rates);
  const engine::DeviceMemory memory = engine::device_memory(device);
  result.figures = {{"images_per_second", json_of(result.images_per_second)},
                    {"model", options.model.model},
                    {"batch_size", options.loader.batch_size.value()},
                    {"accumulation_steps", options.train.accumulation_steps},
                    {"img_size", options.data.img_size.value()},
                    {"clip_frames", frames_of(options)},
                    {"device", options.device.device},
                    {"precision", precision_text(options, precision)},
                    {"peak_device_bytes", memory.peak_bytes}};
  result.lines.push_back(core::format(
      "step: {} batch {} x {} at {} px on {}, {}: {}{}", options.model.model, options.loader.batch_size.value(),
      options.train.accumulation_steps, options.data.img_size.value(), options.device.device,
      precision_text(options, precision), text_of(result.images_per_second, "images/s"),
      memory.peak_bytes > 0 ? ", peak " + core::bytes_text(static_cast<double>(memory.peak_bytes)) : ""));
  return result;
}

}  // namespace stoker::app
