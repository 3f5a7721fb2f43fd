// SPDX-License-Identifier: Apache-2.0
#include "core/time/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "core/format.h"
#include "core/text/json.h"

namespace stoker::core {
namespace trace_internal {
std::atomic<bool> recording{false};
}

namespace {

struct Span {
  const char* name = nullptr;
  TraceClock::time_point begin, end;
  int64_t number = -1;
  int32_t track = 0;
};

struct Recording {
  std::mutex mutex;
  TraceClock::time_point begin, end;
  std::vector<Span> spans;
  size_t capacity = 0;
  int64_t dropped = 0;
};

Recording& the_recording() {
  static Recording recording;
  return recording;
}

int32_t thread_id() {
  thread_local const auto id = static_cast<int32_t>(::syscall(SYS_gettid));
  return id;
}

void add(const Span& span) {
  Recording& recording = the_recording();
  const std::lock_guard<std::mutex> lock(recording.mutex);
  if (recording.capacity == 0 || span.begin < recording.begin || span.begin > recording.end) return;
  if (recording.spans.size() < recording.capacity) {
    recording.spans.push_back(span);
  } else {
    ++recording.dropped;
  }
}

/// The name in the kernel; threads that have ended have none.
std::string thread_name(int32_t track) {
  if (track == kDeviceTrack) return "device";
  if (track == ::getpid()) return "training";
  std::ifstream file(format("/proc/self/task/{}/comm", track));
  std::string name;
  std::getline(file, name);
  return name.empty() ? format("thread {}", track) : name;
}

}  // namespace

void begin_trace(int64_t capacity) {
  Recording& recording = the_recording();
  const std::lock_guard<std::mutex> lock(recording.mutex);
  recording.spans.clear();
  recording.capacity = static_cast<size_t>(std::max<int64_t>(1, capacity));
  recording.dropped = 0;
  recording.begin = TraceClock::now();
  recording.end = TraceClock::time_point::max();
  trace_internal::recording = true;
}

void end_trace() {
  Recording& recording = the_recording();
  const std::lock_guard<std::mutex> lock(recording.mutex);
  trace_internal::recording = false;
  recording.end = std::min(recording.end, TraceClock::now());
}

void add_span(const char* name, TraceClock::time_point begin, TraceClock::time_point end, int64_t number) {
  add({name, begin, end, number, thread_id()});
}

void add_device_span(const char* name, TraceClock::time_point begin, TraceClock::time_point end, int64_t number) {
  add({name, begin, end, number, kDeviceTrack});
}

std::string take_trace_json() {
  end_trace();
  Recording& recording = the_recording();
  std::vector<Span> spans;
  int64_t dropped = 0;
  {
    const std::lock_guard<std::mutex> lock(recording.mutex);
    spans.swap(recording.spans);
    dropped = recording.dropped;
    recording.capacity = 0;
  }
  const auto microseconds = [](TraceClock::duration duration) {
    return std::chrono::duration<double, std::micro>(duration).count();
  };
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;  // the outer one first
  });
  const int process = ::getpid();
  // By hand, one event a line: a document of a million objects would take ten times the memory of the spans.
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  text += format(R"({{"name": "process_name", "ph": "M", "pid": {}, "args": {{"name": "train"}}}})", process);
  std::set<int32_t> tracks;
  for (const Span& span : spans) tracks.insert(span.track);
  for (const int32_t track : tracks) {
    text += format(
        ",\n"
        R"({{"name": "thread_name", "ph": "M", "pid": {}, "tid": {}, "args": {{"name": {}}}}})",
        process, track, Json(thread_name(track)).dump(-1, ' ', true, Json::error_handler_t::replace));
  }
  for (const Span& span : spans) {
    text += format(
        ",\n"
        R"({{"name": "{}", "ph": "X", "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f})",
        span.name, process, span.track, microseconds(span.begin - recording.begin),
        microseconds(span.end - span.begin));
    if (span.number >= 0) text += format(R"(, "args": {{"number": {}}})", span.number);
    text += "}";
  }
  return text + format("\n], \"otherData\": {{\"spans_left_out\": {}}}}}\n", dropped);
}

}  // namespace stoker::core
