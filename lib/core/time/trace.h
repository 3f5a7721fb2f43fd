// SPDX-License-Identifier: Apache-2.0
// Spans of time of all threads on one time line, while somebody records them. Bounded memory; when nobody
// records, a span costs one look at a flag.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace stoker::core {

using TraceClock = std::chrono::steady_clock;

/// Track of spans that no thread of this process lived through: those of a device.
inline constexpr int32_t kDeviceTrack = 0;

/// Records from now on, at most `capacity` spans; later ones are counted, not kept. What was recorded before
/// is dropped.
void begin_trace(int64_t capacity);
/// Spans that begin later are not recorded.
void end_trace();
/// Chrome's trace format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU, as
/// chrome://tracing and ui.perfetto.dev open it: complete events in microseconds, one track per thread with
/// its name. Frees the recording.
std::string take_trace_json();

namespace trace_internal {
extern std::atomic<bool> recording;
}
inline bool is_tracing() { return trace_internal::recording.load(std::memory_order_relaxed); }

/// Adds a span of the calling thread, or of kDeviceTrack. `name` must outlive the recording: a literal.
/// `number`: a sample, an update; -1: none. Any thread.
void add_span(const char* name, TraceClock::time_point begin, TraceClock::time_point end, int64_t number = -1);
void add_device_span(const char* name, TraceClock::time_point begin, TraceClock::time_point end, int64_t number = -1);

/// A scope as a span.
class TraceScope {
 public:
  explicit TraceScope(const char* name, int64_t number = -1) : name_(is_tracing() ? name : nullptr), number_(number) {
    if (name_) begin_ = TraceClock::now();
  }
  ~TraceScope() {
    if (name_) add_span(name_, begin_, TraceClock::now(), number_);
  }
  TraceScope& operator=(TraceScope&&) = delete;  // not copied, not moved

 private:
  const char* const name_;
  const int64_t number_;
  TraceClock::time_point begin_;
};

}  // namespace stoker::core
