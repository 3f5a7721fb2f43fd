// SPDX-License-Identifier: Apache-2.0
// Through LibTorch's device-neutral interface: no headers of a device's toolkit are needed.
#include "engine/device/stream_order.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <thread>
#include <vector>

namespace stoker::engine {
namespace {

constexpr std::chrono::microseconds kStreamPoll(30);

class DeviceStreams : public StreamOrder {
 public:
  DeviceStreams(const c10::Device& device, size_t marks)
      : device_(device),
        streams_(device.type()),
        own_(streams_.getStreamFromGlobalPool(device, /*isHighPriority=*/true)) {
    marks_.reserve(marks);
    for (size_t i = 0; i < marks; ++i) marks_.emplace_back(device.type());
  }
  void set(size_t mark) override { marks_[mark].record(streams_.getStream(device_)); }
  void wait(size_t mark) override { marks_[mark].block(streams_.getStream(device_)); }
  void finish() override {  // a call that waits would keep a CPU busy
    while (!streams_.queryStream(streams_.getStream(device_))) std::this_thread::sleep_for(kStreamPoll);
  }
  void on_own_stream(const std::function<void()>& work) override {
    const c10::StreamGuard guard(own_);  // makes the device the current one, too
    work();
  }

 private:
  const c10::Device device_;
  const c10::impl::VirtualGuardImpl streams_;
  const c10::Stream own_;
  std::vector<c10::Event> marks_;
};

}  // namespace

std::unique_ptr<StreamOrder> stream_order(const c10::Device& device, size_t marks) {
  if (device.is_cpu()) return nullptr;
  return std::make_unique<DeviceStreams>(device, marks);
}

void finish_stream(const c10::Device& device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl streams(device.type());
  streams.synchronizeStream(streams.getStream(device));
}

}  // namespace stoker::engine
