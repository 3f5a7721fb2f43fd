// SPDX-License-Identifier: Apache-2.0
// Marks in the stream of work of a device, whose times are read once it has passed them: no thread waits. The
// part with CUDA headers lives in device_cuda.cpp; CPUs have no time line of their own.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <memory>

namespace stoker::engine {

class DeviceTimeline {
 public:
  struct Mark {
    int what = 0;
    std::chrono::steady_clock::time_point time;  ///< on the host's clock, right to some 10 us at the start of the run
  };

  virtual ~DeviceTimeline() = default;
  /// Behind all work that was queued so far on the current stream.
  virtual void mark(int what) = 0;
  /// The oldest mark that was not yet taken, if the device has passed it. Never waits.
  virtual bool take(Mark& mark) = 0;
};

/// nullptr for the CPU. Waits once for the device.
std::unique_ptr<DeviceTimeline> make_device_timeline(torch::Device device);

}  // namespace stoker::engine
