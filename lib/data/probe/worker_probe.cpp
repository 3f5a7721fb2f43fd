// SPDX-License-Identifier: Apache-2.0
#include "data/probe/worker_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>

#include "core/format.h"
#include "core/system/stop_signal.h"
#include "core/system/worker_pool.h"
#include "core/time/clock.h"
#include "data/image/jpeg/jpeg_decode.h"
#include "data/loader/sample_reader.h"

namespace stoker::data {
namespace {

/// Threads that make samples. Only as many work at a time as are being measured; the others wait. Images differ in size
/// by more than a short measurement averages out, so work is counted in stored bytes where they are known, else in
/// images.
class ProbeWorkers {
 public:
  ProbeWorkers(const Source& source, const TransformPlan& plan, const WorkerProbeSettings& settings)
      : source_(source), plan_(plan), settings_(settings), stride_(stride_for(source.size())) {
    try {
      for (int64_t i = 0; i < settings.max_workers; ++i) {
        if (threads_.add([this, i] { work(i); })) continue;
        fail("no more threads can be started");
        break;
      }
    } catch (...) {
      finish();
      throw;
    }
  }
  ~ProbeWorkers() { finish(); }
  ProbeWorkers& operator=(ProbeWorkers&&) = delete;  // not copied, not moved

  /// Work that `workers` threads do in a second. A fifth of the time passes before measuring begins.
  double work_per_second(int64_t workers, double seconds) {
    awake_ = workers;
    {
      // A thread that has read the old number, but does not wait yet, holds the mutex; without this it would miss the
      // wake-up.
      const std::lock_guard<std::mutex> lock(mutex_);
    }
    wake_.notify_all();
    pause(0.2 * seconds);
    const int64_t before = work_.load();
    const double start = settings_.clock->now();
    pause(0.8 * seconds);
    const int64_t after = work_.load();
    return static_cast<double>(after - before) / (settings_.clock->now() - start);
  }
  /// Ends the threads: what they did and what went wrong is complete then.
  void finish() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      quitting_ = true;
    }
    wake_.notify_all();
    threads_.wait();
  }
  double images_per_work() const {
    return static_cast<double>(images_.load()) / static_cast<double>(std::max<int64_t>(1, work_.load()));
  }

  std::string failure() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failure_;
  }

 private:
  /// Neighbours lie in one folder and look alike; a step that shares no divisor with the size meets all.
  static int64_t stride_for(int64_t size) {
    int64_t stride = static_cast<int64_t>(0.618 * static_cast<double>(size)) | 1;
    while (std::gcd(stride, size) != 1) ++stride;
    return stride;
  }

  void pause(double seconds) const {
    core::throw_if_stopped();
    settings_.clock->sleep(seconds);
  }

  void fail(const std::string& why) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.empty()) failure_ = why;
    quitting_ = true;
  }

  /// Waits while more threads than requested would work. False: the thread is to end.
  bool wait_until_awake(int64_t number) {
    if (number < awake_.load(std::memory_order_relaxed) && !quitting_.load(std::memory_order_relaxed)) return true;
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, [&] { return quitting_ || number < awake_; });
    return !quitting_;
  }

  void work(int64_t number) {
    try {
      SampleReader reader(source_, plan_, settings_.limits, settings_.seed);
      std::vector<uint8_t> row(static_cast<size_t>(plan_.shape.bytes()));
      std::vector<float> targets(static_cast<size_t>(source_.num_targets()));
      StageTimes times;
      while (wait_until_awake(number)) {
        const int64_t position = next_.fetch_add(1, std::memory_order_relaxed);
        const int64_t sample = position % source_.size() * stride_ % source_.size();
        // A bad image is work as well.
        reader.read_into(sample, /*epoch=*/0, /*round=*/0, row.data(), targets.data(), times);
        images_.fetch_add(1, std::memory_order_relaxed);
        work_.fetch_add(std::max<int64_t>(1, stored_bytes(source_, sample)), std::memory_order_relaxed);
      }
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }

  const Source& source_;
  const TransformPlan& plan_;
  const WorkerProbeSettings& settings_;
  const int64_t stride_;
  std::atomic<int64_t> next_{0}, images_{0}, work_{0}, awake_{0};
  std::atomic<bool> quitting_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string failure_;
  core::WorkerPool threads_;  ///< last: they use all of the above
};

}  // namespace

std::vector<int64_t> worker_counts(int64_t max_workers) {
  std::vector<int64_t> counts;
  for (int64_t count = 1; count < max_workers; count *= 2) counts.push_back(count);
  counts.push_back(max_workers);
  return counts;
}

std::vector<double> better_of_two(const std::vector<int64_t>& counts, double seconds,
                                  const std::function<double(int64_t workers, double seconds)>& measure) {
  const double share = seconds / (2 * static_cast<double>(counts.size()));
  std::vector<double> best(counts.size(), 0);
  for (size_t i = 0; i < 2 * counts.size(); ++i) {
    const size_t which = i < counts.size() ? i : 2 * counts.size() - 1 - i;
    best[which] = std::max(best[which], measure(counts[which], share));
  }
  return best;
}

WorkerProbe probe_workers(const Source& source, const TransformPlan& plan, const WorkerProbeSettings& settings) {
  constexpr int64_t kFewSamples = 200;
  WorkerProbe probe;
  probe.skipped = settings.max_workers <= 1     ? "there is one CPU"
                  : source.size() < kFewSamples ? "the data is small"
                  : holds_pixels(source)        ? "the data needs no decoding"
                                                : "";
  if (!probe.skipped.empty()) return probe;

  const std::vector<int64_t> counts = worker_counts(settings.max_workers);
  ProbeWorkers probed(source, plan, settings);
  const std::vector<double> work =
      better_of_two(counts, settings.seconds, [&probed](int64_t workers, double seconds) {  // work per second
        return probed.work_per_second(workers, seconds);
      });
  probed.finish();
  probe.skipped = probed.failure();
  if (!probe.skipped.empty()) return probe;
  for (size_t i = 0; i < counts.size(); ++i) {
    probe.rates.push_back({counts[i], work[i] * probed.images_per_work()});
  }
  return probe;
}

int64_t best_workers(const std::vector<WorkerRate>& rates) {
  double best = 0;
  for (const WorkerRate& rate : rates) best = std::max(best, rate.images_per_second);
  for (const WorkerRate& rate : rates) {
    if (rate.images_per_second >= 0.99 * best) return rate.workers;
  }
  return 0;
}

std::string rates_text(const std::vector<WorkerRate>& rates) {
  std::string text;
  for (const WorkerRate& rate : rates) {
    text += core::format("{}{} {}with {}", text.empty() ? "" : ", ",
                         core::count_text(static_cast<int64_t>(rate.images_per_second)),
                         text.empty() ? "images/s " : "", rate.workers);
  }
  return text;
}

DecodeReference::DecodeReference(const Source& source, int channels, const DecodeLimits& limits, int64_t max_images,
                                 int64_t max_bytes)
    : channels_(channels), limits_(limits) {
  const int64_t wanted = std::min(source.size(), max_images);
  std::vector<uint8_t> buffer;
  for (int64_t i = 0; i < wanted && bytes_ < max_bytes; ++i) {
    core::throw_if_stopped();
    SampleContent content;
    if (!source.read(i * source.size() / wanted, buffer, content).empty() || content.is_pixels()) continue;
    std::vector<uint8_t> file(content.bytes, content.bytes + content.size);
    if (!decode(file).empty()) continue;
    bytes_ += static_cast<int64_t>(content.size);
    megapixels_ += 1e-6 * image_.width * image_.height;
    files_.push_back(std::move(file));
  }
}

std::string DecodeReference::decode(const std::vector<uint8_t>& file) {
  ImageHeader header;
  std::string reason = read_header(file.data(), file.size(), limits_, header);
  if (!reason.empty()) return reason;
  Region whole{0, 0, header.width, header.height};
  if (header.format != ImageFormat::jpeg || header.orientation != 1) {
    return decode_region(file.data(), file.size(), channels_, limits_, header, whole, image_);
  }
  return decode_jpeg(file.data(), file.size(), channels_, limits_, whole, image_, EntropyStage::libjpeg);
}

double DecodeReference::decode_all() {
  const auto begin = std::chrono::steady_clock::now();
  for (const std::vector<uint8_t>& file : files_) {
    core::throw_if_stopped();
    decode(file);
  }
  return core::seconds_since(begin);
}

}  // namespace stoker::data
