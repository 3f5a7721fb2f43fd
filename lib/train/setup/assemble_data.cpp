// SPDX-License-Identifier: Apache-2.0
// The part of assembling that is about data: facts of it, and how it reaches the device.
#include <algorithm>
#include <cmath>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "data/probe/probe_sizes.h"
#include "engine/device/device.h"
#include "model/script/network_library.h"
#include "train/setup/assemble.h"
#include "train/setup/hooks.h"

namespace stoker::train {

data::LoaderSettings loader_settings(const config::ResolvedOptions& options, torch::Device device) {
  data::LoaderSettings settings;
  settings.num_workers = options.loader.num_workers;
  settings.prefetch_factor = options.loader.prefetch_factor;
  settings.pin_memory = options.loader.pin_memory && device.is_cuda();  // pinning makes a CUDA context
  settings.seed = options.train.seed;
  settings.on_bad_image = options.data.on_bad_image;
  settings.max_bad = options.data.max_bad;
  settings.limits = decode_limits(options.data);
  return settings;
}

namespace {

data::FeedSettings feed_settings(const config::ResolvedOptions& options, torch::Device device) {
  data::FeedSettings settings;
  settings.device = device;
  settings.channels_last = options.precision.channels_last;
  settings.mean = options.data.mean;
  settings.std = options.data.std;
  hook_feed(options.loader, settings);
  return settings;
}

/// The memory that pixels may use: of the host's for the CPU, of the device's, and less where it was not requested.
int64_t resident_budget(torch::Device device, bool is_requested) {
  const int64_t free_bytes =
      device.is_cpu() ? core::read_machine_facts().ram_available_bytes : engine::device_memory(device).free_bytes;
  return free_bytes / (is_requested ? 2 : 16);
}

/// null: the loader makes pixels.
std::shared_ptr<const data::ResidentPixels> resident_pixels(const config::ResolvedOptions& options,
                                                            const data::Source& source, const data::TransformPlan& plan,
                                                            torch::Device device) {
  const std::optional<config::FeedKind>& feed = options.loader.feed;
  if (feed == config::FeedKind::loader || (!feed && !device.is_cuda())) return nullptr;
  data::ResidentPixels::Settings settings;
  settings.device = device;
  settings.limits = decode_limits(options.data);
  settings.threads = std::max<int64_t>(1, options.loader.num_workers);
  settings.budget_bytes = resident_budget(device, feed.has_value());
  const data::ResidentPixels::Loaded loaded = data::ResidentPixels::load(source, plan, settings);
  const char* const which = plan.training ? "training" : "validation";
  if (loaded.pixels) {
    core::log_debug("feed resident: {} of {} images stay on {}",
                    core::bytes_text(static_cast<double>(loaded.pixels->bytes())), which, device.str());
  } else if (feed && plan.training) {
    throw core::Error(core::ErrorKind::config, "feed resident is not possible: " + loaded.obstacle,
                      "leave --feed out, or set --feed loader");
  } else {
    core::log_debug("feed loader of {} images: {}", which, loaded.obstacle);
  }
  return loaded.pixels;
}

std::optional<data::StoredImages> layout_of(const data::FeedSettings& settings) {
  if (!settings.resident) return std::nullopt;
  return settings.resident->layout();
}

/// Mean and standard deviation of each target; in two passes, since a mean may be far from 0.
void measure_targets(const data::Source& source, config::DataFacts& facts) {
  const auto targets = static_cast<size_t>(source.num_targets());
  const auto samples = static_cast<double>(source.size());
  std::vector<float> row(targets);
  facts.target_mean.assign(targets, 0);
  facts.target_deviation.assign(targets, 0);
  for (int64_t i = 0; i < source.size(); ++i) {
    source.targets(i, row.data());
    for (size_t t = 0; t < targets; ++t) facts.target_mean[t] += row[t] / samples;
  }
  for (int64_t i = 0; i < source.size(); ++i) {
    source.targets(i, row.data());
    for (size_t t = 0; t < targets; ++t) {
      const double difference = row[t] - facts.target_mean[t];
      facts.target_deviation[t] += difference * difference / samples;
    }
  }
  for (double& deviation : facts.target_deviation) deviation = std::sqrt(deviation);
}

/// The facts about any data without reading it.
config::DataFacts kind_of(const data::Source& source) {
  const data::SampleShape fixed = source.fixed_shape();
  config::DataFacts facts;
  facts.has_videos = data::holds_videos(source);
  facts.has_fixed_size = fixed.height > 0;
  facts.has_float_samples = fixed.element != data::Element::uint8;
  facts.channels = fixed.channels;
  facts.median_height = fixed.height;
  facts.median_width = fixed.width;
  return facts;
}

/// Whether some have more than 8 bits.
bool measure_sizes(const data::Source& source, double max_image_megapixels, config::DataFacts& facts) {
  const data::SizeProbe probe = data::probe_sizes(source, max_image_megapixels);
  if (!facts.has_fixed_size) facts.channels = probe.channels;
  facts.median_height = probe.median_height;
  facts.median_width = probe.median_width;
  return probe.has_wide;
}

}  // namespace

config::DataFacts evaluation_facts(const data::Source& source, const config::DataOptions& given, int64_t num_classes) {
  config::DataFacts facts = kind_of(source);
  facts.of_training = false;
  facts.num_classes = num_classes;
  // Images that cannot be read are not a reason to end where their size is not needed.
  const bool needs_size = given.img_size.is_auto() || given.in_chans.is_auto();
  if (!facts.has_fixed_size && needs_size) measure_sizes(source, given.max_image_megapixels, facts);
  return facts;
}

config::DataFacts facts_of(const data::Source& train, const config::DataOptions& given) {
  config::DataFacts facts = kind_of(train);
  const bool has_wide = measure_sizes(train, given.max_image_megapixels, facts);
  const bool asks_for_range = given.input_range.is_auto() || given.input_range.value() == config::kPercentiles;
  if (has_wide && asks_for_range) {
    const data::RangeProbe range = data::probe_range(train, given.max_image_megapixels);
    facts.wide_images = range.images;
    facts.range_low = range.low;
    facts.range_high = range.high;
    facts.has_narrow_range = range.is_narrow;
  }
  facts.num_classes = static_cast<int64_t>(train.learned_names().size());
  facts.train_images = train.size();
  if (given.mean.is_auto() || given.std.is_auto()) {
    const data::InputStatistics inputs = data::measure_inputs(train);
    facts.input_mean = inputs.mean;
    facts.input_deviation = inputs.deviation;
    facts.input_samples = inputs.samples;
  }
  if (config::is_numeric_task(given.task)) {
    measure_targets(train, facts);
  } else if (facts.num_classes > 0) {  // loose images have no labels
    facts.class_images.assign(static_cast<size_t>(facts.num_classes), 0);
    for (int64_t i = 0; i < train.size(); ++i) ++facts.class_images[static_cast<size_t>(train.label(i))];
  }
  return facts;
}

data::TransformPlan transform_plan(const config::ResolvedOptions& options, const data::Source& source, bool training) {
  return data::make_transform_plan(options.data, options.augment, training, source.fixed_shape());
}

config::Preprocessing preprocessing_for(const config::ResolvedOptions& options, const data::Source& train) {
  const data::SampleShape shape = train.fixed_shape();
  return config::preprocessing_of(options, train.learned_names(),
                                  {shape.frames, shape.height, shape.width, shape.channels,
                                   data::element_name(shape.element), shape.views, train.excerpts() != nullptr});
}

std::shared_ptr<data::Loader> training_loader(const config::ResolvedOptions& options,
                                              std::shared_ptr<const data::Source> source,
                                              const engine::RankShare& share,
                                              const std::optional<data::StoredImages>& stored) {
  data::LoaderSettings settings = loader_settings(options, torch::Device(options.device.device));
  settings.batch_size = options.loader.batch_size;
  settings.shuffle = true;
  settings.class_balanced = options.loader.class_balanced;
  settings.shuffle_buffer = options.loader.shuffle_buffer;
  settings.drop_last = options.loader.drop_last;
  settings.stored = stored;
  const data::TransformPlan plan = transform_plan(options, *source, /*training=*/true);
  if (options.train.replicas > 1) {
    // A loader without workers has the batches of an epoch, and reads nothing.
    data::LoaderSettings without_workers = settings;
    without_workers.num_workers = 0;
    settings.own_batches = engine::own_batches(plan_epoch(options, data::Loader(source, plan, without_workers)), share);
  }
  return std::make_shared<data::Loader>(std::move(source), plan, settings);
}

std::unique_ptr<data::DeviceFeed> training_feed(const config::ResolvedOptions& options,
                                                std::shared_ptr<const data::Source> source, torch::Device device,
                                                const engine::RankShare& share) {
  data::FeedSettings settings = feed_settings(options, device);
  settings.resident = resident_pixels(options, *source, transform_plan(options, *source, /*training=*/true), device);
  auto loader = training_loader(options, std::move(source), share, layout_of(settings));
  return std::make_unique<data::DeviceFeed>(std::move(loader), settings);
}

namespace {

data::LoaderSettings ordered_settings(const config::ResolvedOptions& options, const data::Source& source,
                                      int64_t batch_size, const engine::RankShare& share) {
  data::LoaderSettings settings = loader_settings(options, torch::Device(options.device.device));
  settings.batch_size = batch_size;
  if (share.count == 1) return settings;
  const int64_t batches = (source.size() - 1) / batch_size + 1;
  settings.own_batches.emplace();
  for (int64_t batch = share.rank; batch < batches; batch += share.count) settings.own_batches->push_back(batch);
  return settings;
}

}  // namespace

std::unique_ptr<data::DeviceFeed> ordered_feed(const config::ResolvedOptions& options,
                                               std::shared_ptr<const data::Source> source, torch::Device device,
                                               const engine::RankShare& share) {
  const data::LoaderSettings settings = ordered_settings(options, *source, options.loader.batch_size, share);
  const data::TransformPlan plan = transform_plan(options, *source, /*training=*/true);
  auto loader = std::make_shared<data::Loader>(std::move(source), plan, settings);
  return std::make_unique<data::DeviceFeed>(std::move(loader), feed_settings(options, device));
}

std::unique_ptr<data::DeviceFeed> evaluation_feed(const config::ResolvedOptions& options,
                                                  std::shared_ptr<const data::Source> source, torch::Device device,
                                                  const engine::RankShare& share, bool is_repeated) {
  data::LoaderSettings settings = ordered_settings(options, *source, options.loader.val_batch_size, share);
  data::TransformPlan plan = transform_plan(options, *source, /*training=*/false);
  data::add_views(options.train.tta, plan);
  data::FeedSettings feed = feed_settings(options, device);
  if (is_repeated) feed.resident = resident_pixels(options, *source, plan, device);
  settings.stored = layout_of(feed);
  auto loader = std::make_shared<data::Loader>(std::move(source), plan, settings);
  return std::make_unique<data::DeviceFeed>(std::move(loader), feed);
}

std::string augment_text(const config::ResolvedOptions& options, const data::Source& train,
                         const engine::MixSettings& mix) {
  const std::string mixing = engine::mix_text(mix);
  return data::transform_text(transform_plan(options, train, /*training=*/true)) +
         (mixing.empty() ? "" : ", " + mixing);
}

engine::EpochPlan plan_epoch(const config::ResolvedOptions& options, const data::Loader& loader) {
  return {loader.images_per_epoch(), options.loader.batch_size, loader.batches_per_epoch(),
          options.train.accumulation_steps, options.train.replicas};
}

// From resolved options to how updates are made: settings of updates and of the trainer, and who records updates for
// --graphs.

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

/// An interval of epochs or updates in updates; 0: never, or by the clock.
int64_t updates_of(const config::Interval& interval, int64_t updates_per_epoch) {
  const bool by_epochs = interval.unit == config::Interval::Unit::epochs;
  if (!by_epochs && interval.unit != config::Interval::Unit::updates) return 0;
  return std::llround(interval.amount) * (by_epochs ? updates_per_epoch : 1);
}

}  // namespace

engine::Checkpoints::Kept kept_checkpoints(const config::ResolvedOptions& options, const engine::EpochPlan& plan) {
  return {updates_of(options.run.keep_every, plan.updates()), options.run.average_last,
          updates_of(options.run.save_every, plan.updates())};
}

engine::UpdateSettings update_settings(const config::ResolvedOptions& options, const engine::Precision& precision) {
  return {precision, options.optim.clip_grad, options.optim.clip_mode};
}

engine::UpdaterSettings updater_settings(const config::ResolvedOptions& options, const engine::Precision& precision,
                                         int64_t updates_per_epoch) {
  const config::ResolvedAugmentOptions& augment = options.augment;
  const config::Interval& frozen = options.model.freeze_for;
  const auto per_unit = static_cast<double>(frozen.unit == config::Interval::Unit::epochs ? updates_per_epoch : 1);
  const bool thaws = frozen.unit != config::Interval::Unit::never && updates_per_epoch > 0;
  return {
      update_settings(options, precision),
      {augment.mixup_alpha, augment.cutmix_alpha, augment.mixup_prob, augment.mixup_switch_prob, options.train.seed},
      options.train.seed,
      options.train.auto_micro_batch,
      order_of(options.device.exchange),
      options.device.overlap_exchange && !options.model.grad_checkpointing,
      thaws ? std::max<int64_t>(1, std::llround(frozen.amount * per_unit)) : 0,
      options.model.sync_bn,
      options.device.graphs == config::Graphs::on};
}

engine::TrainerSettings trainer_settings(const config::ResolvedOptions& options, const engine::EpochPlan& plan,
                                         const engine::Precision& precision, double seconds_before) {
  engine::TrainerSettings settings;
  settings.plan = plan;
  settings.limits = limits_of(options, seconds_before);
  settings.updater = updater_settings(options, precision, plan.updates());
  settings.eval_metric = options.train.eval_metric;
  settings.min_delta = options.train.min_delta;
  settings.tta = options.train.tta;
  settings.val_every = options.train.val_every;
  if (settings.val_every.unit == config::Interval::Unit::epochs && settings.val_every.amount < 1) {
    settings.val_every = config::Interval::updates(settings.val_every.amount * static_cast<double>(plan.updates()));
  }
  settings.can_validate = options.data.val_split != config::kNoValidation;
  settings.save_every = options.run.save_every;
  settings.statistics_images = options.model.precise_bn;
  if (const int64_t every = updates_of(options.run.keep_every, plan.updates()); every > 0) {
    settings.keep_every = config::Interval::updates(static_cast<double>(every));
  }
  settings.averages = options.run.average_last > 0;
  settings.report_every = in_updates(options.run.report_every, plan.updates());
  settings.telemetry.digest_every = options.run.digest_every;
  settings.telemetry.tries_graphs = !options.device.graphs;
  settings.skips = {options.precision.min_scale, options.precision.max_skipped};
  return settings;
}

}  // namespace stoker::train
