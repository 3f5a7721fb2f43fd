// SPDX-License-Identifier: Apache-2.0
#include "train/setup/loader_tuning.h"

#include <algorithm>

#include "core/format.h"
#include "data/cache/cached_source.h"
#include "data/loader/batch_ring.h"
#include "data/open_datasets.h"
#include "data/probe/worker_probe.h"
#include "train/setup/assemble.h"

namespace stoker::train {
namespace {

using core::format;

std::string bytes_text(int64_t bytes) { return core::bytes_text(static_cast<double>(bytes)); }

void choose_budget(Settings& settings, const core::MachineFacts& machine, int64_t reserved_bytes) {
  constexpr int64_t kMegabyte = 1'000'000;
  const int64_t half = std::max<int64_t>(0, machine.ram_available_bytes - reserved_bytes) / 2;
  settings.learn(
      &config::Facts::cache_budget,
      {half / kMegabyte * kMegabyte, format("half of {} free less {} for the rest of the run",
                                            bytes_text(machine.ram_available_bytes), bytes_text(reserved_bytes))});
}

/// "ram", "compressed" or "none", as the option is written.
std::string tier_text(config::CacheTier tier) {
  return tier == config::CacheTier::ram ? "ram" : tier == config::CacheTier::compressed ? "compressed" : "none";
}

std::string cache_line(const std::string& split, const data::CachePlan& plan) {
  std::string line = format("{} images: {}", split, tier_text(plan.tier));
  if (plan.held() == 0) return line + ", " + plan.reason;
  line += format(", {} when full", bytes_text(plan.planned_bytes()));
  if (plan.tier == config::CacheTier::ram && plan.pixel_samples < plan.samples) {
    line += format(": {} of {} as pixels, {} as stored", core::count_text(plan.pixel_samples),
                   core::count_text(plan.samples), core::count_text(plan.byte_samples));
  } else if (plan.held() < plan.samples) {
    line += format(": {} of {}", core::count_text(plan.held()), core::count_text(plan.samples));
  }
  return line;
}

}  // namespace

int64_t worker_scratch_bytes(const config::DataFacts& facts, const data::Source& source) {
  constexpr int64_t kStackAndTables = 200'000;
  if (data::holds_pixels(source)) return kStackAndTables;
  if (data::decodes_videos(source)) {
    // The frames that an H.264 decoder may hold, in 4:2:0; the one that is shown as RGB, twice; the decoder itself.
    constexpr int64_t kDecoder = 4'000'000, kFrames = 18;
    const int64_t area = facts.median_height * facts.median_width;
    return kStackAndTables + kDecoder + kFrames * area * 3 / 2 + 2 * 3 * area;
  }
  // For a JPEG the file, what libjpeg holds of it and a band of rows come to about as much as an image that is decoded
  // as a whole, which those of other formats are.
  return kStackAndTables + facts.channels * facts.median_height * facts.median_width;
}

int64_t batch_buffer_bytes(const config::ResolvedOptions& options, const data::Source& train) {
  const config::ResolvedLoaderOptions& loader = options.loader;
  const int64_t buffers = data::ring_slots(loader.num_workers, loader.prefetch_factor);
  const data::SampleShape shape = transform_plan(options, train, /*training=*/true).shape;
  return buffers * (loader.batch_size + loader.val_batch_size) * shape.bytes();
}

void measure_workers(Settings& settings, const data::Source& train) {
  const config::ResolvedOptions& options = settings.options();
  if (!settings.was_automatic(options.loader.num_workers)) return;
  const core::MachineFacts& machine = settings.facts().machine;
  const int64_t worker_bytes = worker_scratch_bytes(*settings.facts().data, train);
  data::WorkerProbeSettings probing;
  probing.max_workers = std::clamp<int64_t>(machine.ram_available_bytes / 4 / worker_bytes, 1, machine.cpus);
  probing.seed = options.train.seed;
  probing.limits = decode_limits(options.data);
  const data::WorkerProbe probe =
      data::probe_workers(train, transform_plan(options, train, /*training=*/true), probing);
  if (probe.rates.empty()) return;
  settings.learn(&config::Facts::num_workers, {data::best_workers(probe.rates),
                                               format("{}; {}", data::rates_text(probe.rates), machine.cpus_reason)});
}

Caches add_caches(Settings& settings, const core::MachineFacts& machine, data::Datasets& datasets,
                  int64_t reserved_bytes) {
  const config::ResolvedOptions& options = settings.options();
  choose_budget(settings, machine, reserved_bytes);
  data::CacheSettings caching;
  caching.budget_bytes = options.loader.cache_budget;
  caching.channels = static_cast<int>(options.data.in_chans);
  caching.limits = decode_limits(options.data);
  caching.scan_threads = std::clamp(machine.cpus, 4, 16);  // at least a few, since storage answers late
  if (!settings.was_automatic(options.loader.cache)) caching.tier = options.loader.cache;

  Caches caches;
  const auto add_cache = [&](const std::string& split, std::shared_ptr<const data::Source>& source) {
    data::CachePlan plan;
    if (!caching.tier && options.train.epochs == 1) {
      plan.reason = "one epoch reads each image once";
    } else {
      plan = data::plan_cache(source, caching);
    }
    caching.budget_bytes -= plan.planned_bytes();
    caches.planned_bytes += plan.planned_bytes();
    caches.lines.push_back(cache_line(split, plan));
    source = data::make_cached_source(source, plan, caching);
    return plan;
  };
  const data::CachePlan train = add_cache("training", datasets.train);
  if (datasets.has_validation) add_cache("validation", datasets.val);
  settings.learn(&config::Facts::cache, {train.tier, train.reason});
  return caches;
}

}  // namespace stoker::train
