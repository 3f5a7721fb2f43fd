// SPDX-License-Identifier: Apache-2.0
// Keeps account of where the time of updates goes, while they happen, without a host sync: clocks on the
// training thread, marks in the device's stream that are read when they have been passed, and the loader's
// figures. Writes to the trace too, while one is recorded.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "data/loader/loader.h"
#include "engine/device/device.h"
#include "engine/run/step_times.h"

namespace stoker::engine {

/// One thread, the one that trains. A call ends the stretch of time that began with the call before it. While
/// core::is_instrumented() is false nothing is measured and all figures are 0.
class StepTimer {
 public:
  StepTimer(torch::Device device, const data::Loader& loader);
  /// With a time line that the caller made; nullptr: the device has none.
  StepTimer(std::unique_ptr<DeviceTimeline> timeline, const data::Loader& loader);

  void begin_epoch();
  void begin_update(int64_t number);
  void fetched();  ///< a batch: waiting as long as the loader reports, the rest copying
  void done(StepPart part);
  /// Sums over ranks took so long, in part perhaps while the training thread did something else.
  void exchanged(std::chrono::nanoseconds under_way, int64_t bytes_sent);
  double seconds_so_far(StepPart part) const;  ///< time that the part has taken in the update under way
  void end_epoch();                            ///< what follows belongs to no update

  StepTimings since_report();  ///< or since the epoch began; begins the next window
  StepTimings since_epoch_start();
  /// A window that is long enough to judge by: of at least `seconds` and `updates`, within the epoch. Else one without
  /// updates.
  StepTimings recent(double seconds, int64_t updates);

 private:
  using Clock = std::chrono::steady_clock;
  using Nanoseconds = std::array<int64_t, kStepParts>;

  /// Totals at one moment.
  struct Totals {
    std::array<core::DurationCounts, kStepParts> parts, device;
    core::DurationCounts update, exchange, lag;
    int64_t updates = 0;
    int64_t exchanged_bytes = 0;
    data::SampleTimes samples;
    data::LoaderStats loader;
    double training_cpu_seconds = 0, process_cpu_seconds = 0;
    Clock::time_point at;
  };
  void end_current_update(bool update_follows);
  void end_update();
  void add(StepPart part, Clock::time_point begin, Clock::time_point end);
  void read_device();
  void read_totals();
  StepTimings since(const Totals& before) const;

  const data::Loader& loader_;
  const std::unique_ptr<DeviceTimeline> timeline_;
  Clock::time_point last_, update_begin_;
  int64_t update_ = -1;               ///< the one under way; -1: none
  double waited_before_ = 0;          ///< what the loader had reported at last_
  Nanoseconds now_{}, device_now_{};  ///< times in the update under way, by part
  int64_t exchange_now_ = 0;          ///< likewise
  DeviceTimeline::Mark device_last_;
  int64_t device_update_ = -1;  ///< that the device works at
  struct Begun {
    int64_t number = 0;
    Clock::time_point queued;  ///< when the host came to its begin
  };
  std::deque<Begun> begun_;  ///< updates whose marks are not all taken, in order
  Totals totals_, at_report_, at_recent_, at_epoch_;
};

}  // namespace stoker::engine
