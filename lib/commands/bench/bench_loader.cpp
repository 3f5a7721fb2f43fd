// SPDX-License-Identifier: Apache-2.0
// `train bench loader`: batches from files without anybody who trains on them, against decoding alone.
#include <algorithm>

#include "commands/bench/bench_rounds.h"
#include "core/format.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "core/time/clock.h"
#include "data/probe/worker_probe.h"
#include "train/setup/assemble.h"

namespace stoker::train {
namespace {

/// One round of whole epochs.
struct LoaderRound {
  double seconds = 0, cpu_seconds = 0;
  double images = 0;
};

/// Runs rounds on one loader and keeps what is measured between batches.
class LoaderRounds {
 public:
  explicit LoaderRounds(data::Loader& loader) : loader_(loader) {}

  /// Epochs until `least_seconds` have passed.
  LoaderRound run(double least_seconds) {
    LoaderRound round;
    const double cpu_before = core::read_process_cpu_seconds();
    const BenchClock::time_point begin = BenchClock::now();
    do {
      round.images += run_epoch();
      round.seconds = core::seconds_since(begin);
    } while (round.seconds < least_seconds);
    round.cpu_seconds = core::read_process_cpu_seconds() - cpu_before;
    return round;
  }

  /// The gap that `share` of all gaps between batches do not exceed.
  double gap_seconds(double share) {
    if (gaps_.empty()) return 0;
    const auto at = static_cast<size_t>(share * static_cast<double>(gaps_.size() - 1));
    std::nth_element(gaps_.begin(), gaps_.begin() + static_cast<int64_t>(at), gaps_.end());
    return gaps_[at];
  }
  void forget_gaps() { gaps_.clear(); }

 private:
  double run_epoch() {
    loader_.begin_epoch(epoch_++);
    double images = 0;
    BenchClock::time_point last = BenchClock::now();
    data::HostBatch batch;
    for (bool first = true; loader_.next(batch); first = false) {
      core::throw_if_stopped();
      images += static_cast<double>(batch.samples.size());
      loader_.release(batch);
      const BenchClock::time_point now = BenchClock::now();
      if (!first) gaps_.push_back(std::chrono::duration<double>(now - last).count());
      last = now;
    }
    return images;
  }

  data::Loader& loader_;
  int64_t epoch_ = 0;
  std::vector<double> gaps_;
};

/// From nothing but a list of samples to the first batch: threads, memory, order.
double first_batch_seconds(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source) {
  const BenchClock::time_point begin = BenchClock::now();
  const auto loader = training_loader(options, source);
  loader->begin_epoch(0);
  data::HostBatch batch;
  loader->next(batch);
  const double seconds = core::seconds_since(begin);
  loader->release(batch);
  return seconds;
}

struct Stage {
  const char* name;
  double seconds;
};

std::vector<Stage> stages_between(const data::LoaderStats& before, const data::LoaderStats& after) {
  return {{"read", after.read_seconds - before.read_seconds},
          {"decode", after.decode_seconds - before.decode_seconds},
          {"resize", after.resize_seconds - before.resize_seconds},
          {"augment", after.augment_seconds - before.augment_seconds},
          {"write", after.write_seconds - before.write_seconds}};
}

}  // namespace

BenchResult bench_loader(const config::ResolvedOptions& options, const std::shared_ptr<const data::Source>& source,
                         const BenchEffort& effort) {
  const int cores =
      static_cast<int>(std::clamp<int64_t>(options.loader.num_workers, 1, core::read_machine_facts().cpus));
  const int64_t frames = transform_plan(options, *source, /*training=*/true).shape.images();  // per sample
  const std::string unit = frames > 1 ? "clips" : "images";
  data::DecodeReference reference(*source, static_cast<int>(options.data.in_chans), decode_limits(options.data));
  auto loader = training_loader(options, source);
  LoaderRounds rounds(*loader);

  // Page cache, buffers, the ring: none of it belongs to the rounds.
  if (reference.images() > 0) reference.decode_all();
  rounds.run(0);
  rounds.forget_gaps();
  const data::LoaderStats before = loader->stats();
  std::vector<double> rates, efficiencies, decode_rates, cpu_per_thousand, first_batches;
  double images = 0;
  for (int i = 0; i < effort.rounds; ++i) {
    const double decode_rate =
        reference.images() > 0 ? static_cast<double>(reference.images()) / reference.decode_all() : 0;
    const LoaderRound round = rounds.run(effort.seconds_per_round);
    images += round.images;
    rates.push_back(round.images / round.seconds);
    cpu_per_thousand.push_back(1e3 * round.cpu_seconds / round.images);
    if (decode_rate == 0) continue;
    decode_rates.push_back(decode_rate);
    efficiencies.push_back(100 * rates.back() * static_cast<double>(frames) / (cores * decode_rate));
  }
  const data::LoaderStats after = loader->stats();
  const double gap_p50 = 1e3 * rounds.gap_seconds(0.5), gap_p99 = 1e3 * rounds.gap_seconds(0.99);
  const double peak_rss = static_cast<double>(core::read_process_memory().peak_resident_bytes);
  loader.reset();  // its memory is for the next one, as in a process that has just begun
  for (int i = 0; i < effort.rounds; ++i) first_batches.push_back(1e3 * first_batch_seconds(options, source));
  const Spread decode = spread_of(decode_rates), efficiency = spread_of(efficiencies),
               cpu = spread_of(cpu_per_thousand), first_batch = spread_of(first_batches);

  BenchResult result;
  result.images_per_second = spread_of(rates);
  const double rate = result.images_per_second.median;
  core::Json stages = core::Json::object();
  std::string stages_text;
  for (const Stage& stage : stages_between(before, after)) {
    const double microseconds = 1e6 * stage.seconds / images;
    stages[stage.name] = microseconds;
    stages_text += core::format("{}{} {:.0f}", stages_text.empty() ? "" : ", ", stage.name, microseconds);
  }
  result.figures = {{"images_per_second", json_of(result.images_per_second)},
                    {"images_per_second_per_core", rate / cores},
                    {"cores", cores},
                    {"num_workers", options.loader.num_workers},
                    {"batch_size", options.loader.batch_size},
                    {"img_size", json_of(options.data.img_size)},
                    {"clip_frames", frames},
                    {"images", source->size()},
                    {"decode_efficiency_percent", efficiencies.empty() ? core::Json() : json_of(efficiency)},
                    {"pure_decode_images_per_second", decode_rates.empty() ? core::Json() : json_of(decode)},
                    {"cpu_seconds_per_1000_images", json_of(cpu)},
                    {"first_batch_milliseconds", json_of(first_batch)},
                    {"gap_milliseconds", {{"p50", gap_p50}, {"p99", gap_p99}}},
                    {"peak_rss_bytes", peak_rss},
                    {"microseconds_per_sample", stages}};
  result.lines = {core::format("loader: {}, {:.1f} per core, {} workers on {} cores, batch {} at {} px",
                               text_of(result.images_per_second, unit + "/s"), rate / cores, options.loader.num_workers,
                               cores, options.loader.batch_size, config::image_size_text(options.data.img_size))};
  if (efficiencies.empty()) {
    result.lines.push_back("decode efficiency: none, the data needs no decoding");
  } else {
    result.lines.push_back(
        core::format("decode efficiency: {}; whole files with libjpeg alone, one thread: {} ({:.1f} KB, "
                     "{:.2f} megapixels)",
                     text_of(efficiency, "%"), text_of(decode, "images/s"),
                     1e-3 * static_cast<double>(reference.bytes()) / static_cast<double>(reference.images()),
                     reference.megapixels() / static_cast<double>(reference.images())));
  }
  result.lines.push_back(
      core::format("CPU seconds per 1,000 {}: {:.3f}; first batch after {:.1f} ms; gap between batches p50 "
                   "{:.2f} ms, p99 {:.2f} ms; peak RSS {}",
                   unit, cpu.median, first_batch.median, gap_p50, gap_p99, core::bytes_text(peak_rss)));
  result.lines.push_back(core::format("microseconds per {}: ", frames > 1 ? "clip" : "image") + stages_text);
  return result;
}

}  // namespace stoker::train
