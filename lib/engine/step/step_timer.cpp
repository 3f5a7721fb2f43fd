// SPDX-License-Identifier: Apache-2.0
#include "engine/step/step_timer.h"

#include <algorithm>

#include "core/system/machine.h"
#include "core/time/clock.h"
#include "core/time/instrumentation.h"
#include "core/time/trace.h"

namespace stoker::engine {
namespace {

// Marks that are not a part: the others are the number of the part that they end.
constexpr int kUpdateBegins = -1, kEpochBegins = -2;

int64_t nanoseconds_between(std::chrono::steady_clock::time_point begin, std::chrono::steady_clock::time_point end) {
  return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
}

/// Seconds and counts of the time between; sizes of now.
data::LoaderStats difference(const data::LoaderStats& now, const data::LoaderStats& before) {
  data::LoaderStats window = now;
  window.images -= before.images;
  window.bad_images -= before.bad_images;
  window.consumer_wait_seconds -= before.consumer_wait_seconds;
  window.read_seconds -= before.read_seconds;
  window.decode_seconds -= before.decode_seconds;
  window.augment_seconds -= before.augment_seconds;
  window.resize_seconds -= before.resize_seconds;
  window.write_seconds -= before.write_seconds;
  window.worker_idle_seconds -= before.worker_idle_seconds;
  window.worker_cpu_seconds -= before.worker_cpu_seconds;
  window.batches_requested -= before.batches_requested;
  window.ready_when_requested -= before.ready_when_requested;
  window.empty_when_requested -= before.empty_when_requested;
  return window;
}

}  // namespace

StepTimer::StepTimer(torch::Device device, const data::Loader& loader)
    : StepTimer(make_device_timeline(device), loader) {}

StepTimer::StepTimer(std::unique_ptr<DeviceTimeline> timeline, const data::Loader& loader)
    : loader_(loader), timeline_(std::move(timeline)) {}

void StepTimer::begin_epoch() {
  update_ = -1;
  if (!core::is_instrumented()) return;
  if (timeline_) timeline_->mark(kEpochBegins);
  read_totals();
  at_report_ = at_recent_ = at_epoch_ = totals_;
}

void StepTimer::begin_update(int64_t number) {
  end_current_update(/*update_follows=*/true);
  if (!core::is_instrumented()) return;
  update_ = number;
  last_ = update_begin_ = Clock::now();
  waited_before_ = loader_.waited_seconds();
  if (!timeline_) return;
  timeline_->mark(kUpdateBegins);
  begun_.push_back({number, update_begin_});
  read_device();
}

void StepTimer::fetched() {
  if (update_ < 0) return;
  const Clock::time_point now = Clock::now();
  const double waited = loader_.waited_seconds();
  const auto wait = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::max(0.0, waited - waited_before_)));
  const Clock::time_point came = std::min(now, last_ + wait);
  waited_before_ = waited;
  add(StepPart::wait, last_, came);
  add(StepPart::copy, came, now);
  last_ = now;
  if (timeline_) timeline_->mark(static_cast<int>(StepPart::wait));
}

void StepTimer::done(StepPart part) {
  if (update_ < 0) return;
  const Clock::time_point now = Clock::now();
  add(part, last_, now);
  last_ = now;
  // The time in between is short, and a mark for it would cost more: the part that follows has it.
  if (timeline_ && part != StepPart::other) timeline_->mark(static_cast<int>(part));
}

void StepTimer::exchanged(std::chrono::nanoseconds under_way, int64_t bytes_sent) {
  if (update_ < 0) return;
  exchange_now_ += under_way.count();
  totals_.exchanged_bytes += bytes_sent;
}

double StepTimer::seconds_so_far(StepPart part) const {
  return 1e-9 * static_cast<double>(now_[static_cast<size_t>(part)]);
}

void StepTimer::end_epoch() { end_current_update(/*update_follows=*/false); }

/// The start of the next update ends this one on the device, too.
void StepTimer::end_current_update(bool update_follows) {
  if (update_ < 0) return;
  done(StepPart::other);
  if (timeline_ && !update_follows) timeline_->mark(static_cast<int>(StepPart::other));
  end_update();
  update_ = -1;
}

void StepTimer::add(StepPart part, Clock::time_point begin, Clock::time_point end) {
  now_[static_cast<size_t>(part)] += nanoseconds_between(begin, end);
  if (core::is_tracing() && end > begin) core::add_span(kStepPartNames[static_cast<size_t>(part)], begin, end);
}

void StepTimer::end_update() {
  for (size_t i = 0; i < kStepParts; ++i) totals_.parts[i].add(now_[i]);
  now_ = {};
  totals_.exchange.add(exchange_now_);
  exchange_now_ = 0;
  ++totals_.updates;
  totals_.update.add(nanoseconds_between(update_begin_, last_));
  if (core::is_tracing()) core::add_span("update", update_begin_, last_, update_);
}

/// Takes the marks that the device has passed.
void StepTimer::read_device() {
  for (DeviceTimeline::Mark mark; timeline_->take(mark); device_last_ = mark) {
    if (mark.what >= 0) {
      const auto part = static_cast<size_t>(mark.what);
      device_now_[part] += nanoseconds_between(device_last_.time, mark.time);
      const bool works = mark.what > static_cast<int>(StepPart::copy) && mark.what < static_cast<int>(StepPart::report);
      if (works) core::add_device_span(kStepPartNames[part], device_last_.time, mark.time, device_update_);
      continue;
    }
    if (device_update_ >= 0) {
      if (mark.what == kUpdateBegins) {
        device_now_[static_cast<size_t>(StepPart::other)] += nanoseconds_between(device_last_.time, mark.time);
      }
      for (size_t i = 0; i < kStepParts; ++i) totals_.device[i].add(device_now_[i]);
    }
    device_now_ = {};
    device_update_ = -1;
    if (mark.what == kUpdateBegins && !begun_.empty()) {
      device_update_ = begun_.front().number;
      totals_.lag.add(nanoseconds_between(begun_.front().queued, mark.time));
      begun_.pop_front();
    }
  }
}

void StepTimer::read_totals() {
  if (timeline_) read_device();
  totals_.samples = loader_.sample_times();
  totals_.loader = loader_.stats();
  totals_.training_cpu_seconds = core::read_thread_cpu_seconds();
  totals_.process_cpu_seconds = core::read_process_cpu_seconds();
  totals_.at = Clock::now();
}

StepTimings StepTimer::since_report() {
  if (!core::is_instrumented()) return {};
  read_totals();
  const StepTimings window = since(at_report_);
  at_report_ = totals_;
  return window;
}

StepTimings StepTimer::since_epoch_start() {
  if (!core::is_instrumented()) return {};
  read_totals();
  return since(at_epoch_);
}

StepTimings StepTimer::recent(double seconds, int64_t updates) {
  if (!core::is_instrumented()) return {};
  if (core::seconds_since(at_recent_.at) < seconds || totals_.updates - at_recent_.updates < updates) return {};
  read_totals();
  const StepTimings window = since(at_recent_);
  at_recent_ = totals_;
  return window;
}

StepTimings StepTimer::since(const Totals& before) const {
  StepTimings split;
  const core::DurationCounts updates = totals_.update.since(before.update);
  split.update = updates.spread();
  split.updates = split.update.count;
  split.seconds = updates.total_seconds();
  split.wall_seconds = std::chrono::duration<double>(totals_.at - before.at).count();
  split.has_device = timeline_ != nullptr;
  split.lag_seconds = totals_.lag.since(before.lag).spread().mean_seconds;
  split.exchange = totals_.exchange.since(before.exchange).spread();
  if (split.updates > 0) {
    split.exchanged_bytes =
        static_cast<double>(totals_.exchanged_bytes - before.exchanged_bytes) / static_cast<double>(split.updates);
  }
  for (size_t i = 0; i < kStepParts; ++i) {
    split.parts.spreads[i] = totals_.parts[i].since(before.parts[i]).spread();
    if (timeline_) split.device.spreads[i] = totals_.device[i].since(before.device[i]).spread();
  }
  split.sample = {totals_.samples.read.since(before.samples.read).spread(),
                  totals_.samples.decode.since(before.samples.decode).spread(),
                  totals_.samples.resize.since(before.samples.resize).spread(),
                  totals_.samples.augment.since(before.samples.augment).spread(),
                  totals_.samples.write.since(before.samples.write).spread()};
  split.loader = difference(totals_.loader, before.loader);
  split.training_cpu_seconds = totals_.training_cpu_seconds - before.training_cpu_seconds;
  split.process_cpu_seconds = totals_.process_cpu_seconds - before.process_cpu_seconds;
  return split;
}

}  // namespace stoker::engine
