// SPDX-License-Identifier: Apache-2.0
// How often a piece of work can be done per second, when doing it for the first time takes longer. Torch-free, for any
// work and device.
#pragma once

#include <cstdint>
#include <functional>

namespace stoker::engine {

struct CallRateSettings {
  double seconds = 0.3;        ///< of measuring, about
  int64_t warm_up_calls = 0;   ///< left out, whatever they take: libraries and kernels are loaded, algorithms tried
  int64_t calls_per_look = 1;  ///< between two looks at the clock; at least that many are counted
};

/// A CPU's first call, which makes plans and buffers, counts only where it takes the whole time.
CallRateSettings call_rate_on_cpu(double seconds);
/// A GPU's first calls never count: they load libraries for seconds and let cuDNN try its algorithms.
CallRateSettings call_rate_on_gpu(double seconds);

/// Calls per second. `finish` waits until the device has done what was called; `now` is a clock in seconds. Polls
/// stops.
double call_rate(const std::function<void()>& call, const std::function<void()>& finish,
                 const CallRateSettings& settings, const std::function<double()>& now);

}  // namespace stoker::engine
