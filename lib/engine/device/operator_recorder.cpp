// SPDX-License-Identifier: Apache-2.0
#include "engine/device/operator_recorder.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <chrono>
#include <memory>
#include <set>

#include "core/format.h"
#include "core/time/clock.h"
#include "engine/device/device.h"

namespace stoker::engine {
namespace {

namespace profiler = torch::autograd::profiler;
using profiler::KinetoEvent;

// Values of libkineto's ActivityType, whose header few packages have.
constexpr int kCpuOperator = 0, kUserAnnotation = 1, kDeviceCopy = 3, kDeviceFill = 4, kKernel = 5;

struct Span {
  int64_t begin, end;  ///< nanoseconds
  double seconds;
};

/// Releases name times in nanoseconds.
template <class Event>
auto span_of(const Event& event, int) -> decltype(event.durationNs(), Span()) {
  const auto begin = static_cast<int64_t>(event.startNs()), length = static_cast<int64_t>(event.durationNs());
  return {begin, begin + length, 1e-9 * static_cast<double>(length)};
}
/// Older ones in microseconds, rounded down: the mean of what it can have been is half of one more.
template <class Event>
Span span_of(const Event& event, long) {
  const auto begin = static_cast<int64_t>(event.startUs()), length = static_cast<int64_t>(event.durationUs());
  return {1000 * begin, 1000 * (begin + length), 1e-6 * (static_cast<double>(length) + 0.5)};
}

std::string shapes_text(const KinetoEvent& event) {
  std::string text;
  if (!event.hasShapes()) return text;
  for (const std::vector<int64_t>& sizes : event.shapes()) {
    if (sizes.empty()) continue;  // a number, or a list
    if (!text.empty()) text += ' ';
    for (size_t i = 0; i < sizes.size(); ++i) text += core::format("{}{}", i > 0 ? "x" : "", sizes[i]);
  }
  return text;
}

/// Autograd names functions of C++ by their types: "torch::autograd::CppNode<a::(anonymous namespace)::Norm>" becomes
/// "stoker::NormBackward", as functions of LibTorch's are called. With what autograd writes before it.
std::string short_name(std::string name) {
  static const std::string node = "torch::autograd::CppNode<";
  const size_t begin = name.find(node);
  if (begin == std::string::npos || name.back() != '>') return name;
  const size_t last = name.rfind("::") + 2;
  return name.substr(0, begin) + "stoker::" + name.substr(last, name.size() - last - 1) + "Backward";
}

OperatorCall operator_call(const KinetoEvent& event, bool with_events) {
  const Span span = span_of(event, 0);
  const int64_t device_us = with_events ? event.cudaElapsedUs() : -1;
  return {short_name(event.name()),
          shapes_text(event),
          event.correlationId(),
          event.startThreadId(),
          span.begin,
          span.end,
          span.seconds,
          device_us < 0 ? -1 : 1e-6 * static_cast<double>(device_us)};
}

/// For its lifetime the calling thread is recorded.
class Recording {
 public:
  Recording(torch::Device device, bool uses_events) {
    using State = profiler::ProfilerState;
    using Activity = profiler::ActivityType;
    const profiler::ProfilerConfig config(uses_events ? State::KINETO_GPU_FALLBACK : State::KINETO,
                                          /*report_input_shapes=*/true);
    std::set<Activity> activities = {Activity::CPU};
    if (device.is_cuda() && !uses_events) activities.insert(Activity::CUDA);
    profiler::prepareProfiler(config, activities);
    profiler::enableProfiler(
        config, activities,
        {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE});
  }
  ~Recording() {
    if (is_on_) profiler::disableProfiler();
  }
  Recording& operator=(Recording&&) = delete;  // not copied, not moved

  std::unique_ptr<profiler::ProfilerResult> end() {
    is_on_ = false;
    return profiler::disableProfiler();
  }

 private:
  bool is_on_ = true;
};

}  // namespace

void OperatorRecorder::begin(int64_t skipped, int64_t count) {
  to_skip_ = skipped;
  to_record_ = count;
  table_ = {};
}

void OperatorRecorder::update(const std::function<void()>& update) {
  if (to_record_ == 0 || to_skip_ > 0) {
    update();
    if (to_skip_ > 0) --to_skip_;
    return;
  }
  synchronize(device_);  // what was requested before is not of this update
  Recording recording(device_, uses_events_);
  const auto begin = std::chrono::steady_clock::now();
  update();
  synchronize(device_);
  const double seconds = core::seconds_since(begin);
  const std::unique_ptr<profiler::ProfilerResult> recorded = recording.end();

  std::vector<OperatorCall> calls;
  std::vector<DeviceCall> on_device;
  for (const KinetoEvent& event : recorded->events()) {
    const int activity = event.activityType();
    if (event.deviceType() == c10::DeviceType::CPU) {
      if (activity == kCpuOperator || activity == kUserAnnotation) calls.push_back(operator_call(event, uses_events_));
    } else if (activity == kDeviceCopy || activity == kDeviceFill || activity == kKernel) {
      on_device.push_back({event.name(), event.linkedCorrelationId(), span_of(event, 0).seconds});
    }
  }
  if (device_.is_cuda() && on_device.empty() && may_use_events_ && !uses_events_) {
    uses_events_ = true;  // from the next update on
    return;
  }
  table_.add_update(seconds, at::RecordFunction::currentThreadId(), calls, on_device);
  --to_record_;
}

}  // namespace stoker::engine
