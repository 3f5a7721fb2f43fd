// SPDX-License-Identifier: Apache-2.0
// `train bench`: how fast a part of training is by itself, on data made in memory.
#include <algorithm>
#include <chrono>

#include "app/app.h"
#include "app/assemble.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/stop_signal.h"
#include "engine/device.h"
#include "engine/update_step.h"

namespace stoker::app {
namespace {

constexpr int kWarmUpUpdates = 3;
constexpr int kRounds = 5;
constexpr double kSecondsPerRound = 2;

/// One batch of noise on the device, as the feed would hand it over.
data::Batch random_batch(const config::Options& options, torch::Device device) {
  const int64_t size = options.data.img_size;
  data::Batch batch;
  batch.images = torch::randn({options.loader.batch_size, options.data.in_chans, size, size});
  if (options.precision.channels_last) batch.images = batch.images.contiguous(at::MemoryFormat::ChannelsLast);
  batch.images = batch.images.to(device);
  const int64_t learned = options.data.num_classes;
  batch.labels = torch::randint(learned, {options.loader.batch_size}, at::kLong).to(device);
  batch.targets = torch::randint(2, {options.loader.batch_size, learned}, at::kFloat).to(device);
  batch.planned_images = options.loader.batch_size;
  return batch;
}

Outcome bench_step(config::Configuration& configuration) {
  config::DataFacts facts;  // what ImageNet has, where nothing else was asked for
  const config::Auto<int64_t>& num_classes = configuration.options.data.num_classes;
  const config::TaskKind kind = configuration.options.data.task;
  const int64_t usual = kind == config::TaskKind::multiclass ? 1000 : kind == config::TaskKind::binary ? 2 : 3;
  facts.num_classes = num_classes.is_auto() ? usual : num_classes.value();
  facts.target_mean.assign(static_cast<size_t>(facts.num_classes), 0);
  facts.target_deviation.assign(static_cast<size_t>(facts.num_classes), 1);
  facts.channels = 3;
  facts.median_height = facts.median_width = 224;
  config::resolve_machine(configuration, machine_with_accelerators());
  config::resolve_data(configuration, facts);
  config::resolve_model(configuration, model_facts_of(configuration.options.model));
  const config::Options& options = configuration.options;
  const torch::Device device = open_and_configure_device(options);
  const engine::Precision precision = precision_of(options, device);
  engine::Trainee trainee = build_trainee(options, device);
  trainee.model->train();
  const std::unique_ptr<engine::Task> task = build_task(options, device);
  engine::UpdateStep step(update_settings(options, precision), *task, trainee);
  const data::Batch batch = random_batch(options, device);
  const auto update = [&] {
    core::throw_if_stopped();
    for (int64_t i = 0; i < options.train.accumulation_steps; ++i) {
      step.accumulate(batch, batch.planned_images * options.train.accumulation_steps);
    }
    step.apply(options.optim.lr);
  };

  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < kWarmUpUpdates; ++i) update();
  std::vector<double> rates;  // images/s
  for (int round = 0; round < kRounds; ++round) {
    engine::synchronize(device);
    const Clock::time_point begin = Clock::now();
    double images = 0, seconds = 0;
    do {
      update();
      images += static_cast<double>(batch.planned_images * options.train.accumulation_steps);
      if (device.is_cpu()) seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      if (device.is_cuda() && images >= 50.0 * static_cast<double>(batch.planned_images)) break;
    } while (seconds < kSecondsPerRound);
    engine::synchronize(device);
    rates.push_back(images / std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::sort(rates.begin(), rates.end());
  const engine::DeviceMemory memory = engine::device_memory(device);
  core::log_info("{} batch {} x {} at {} px on {}, {}: {:.1f} images/s (median of {}, {:.1f} to {:.1f}){}",
                 options.model.model, options.loader.batch_size, options.train.accumulation_steps,
                 options.data.img_size.value(), options.device.device, precision_text(options, precision),
                 rates[kRounds / 2], kRounds, rates.front(), rates.back(),
                 memory.peak_bytes > 0 ? ", peak " + core::bytes_text(static_cast<double>(memory.peak_bytes)) : "");
  return {core::kExitOk, "bench"};
}

}  // namespace

Outcome bench(const Invocation& invocation) {
  const std::string& what = invocation.configuration.command.bench;
  if (what == "step") return bench_step(invocation.configuration);
  throw core::Error(core::ErrorKind::usage, "train bench: there is no benchmark " + core::printable(what),
                    "train bench step times one optimizer update");
}

}  // namespace stoker::app
