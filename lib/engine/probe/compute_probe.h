// SPDX-License-Identifier: Apache-2.0
// How fast a device really computes, and what handing work to CPU threads costs: measured in a moment. Torch-free
// header; devices by name ("cpu", "cuda:0").
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stoker::engine {

// How often a piece of work can be done per second, when doing it for the first time takes longer. Torch-free, for any
// work and device.

struct CallRateSettings {
  double seconds = 0.3;        ///< approximate duration of the measurement
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

struct ComputeSpeed {
  std::string operation;         ///< "matmul" or "convolution"
  std::string dtype;             ///< "float32", "bfloat16", "float16"
  bool channels_last = false;    ///< convolution only
  double gflops_per_second = 0;  ///< 1e9 additions and multiplications per second; 0: this build cannot
};

/// Floating-point operations per second that the device reaches at best, in "float32", "bfloat16" or "float16", with
/// the threads that compute now: the faster of a product of matrices and a 3x3 convolution, in parts of `seconds` each
/// of which the best counts, since a neighbour only slows. 0: this build cannot.
double peak_flop_per_second(const std::string& device, const std::string& dtype, double seconds);

/// Forward matrix multiplications and a 3x3 convolution of 64 channels, each for about `seconds_each`. Polls stops.
std::vector<ComputeSpeed> probe_compute(const std::string& device, double seconds_each);

struct ThreadSpeed {
  int64_t threads = 1;
  double handover_seconds = 0;        ///< median time of an operation so short that sharing it out is most of it
  double worst_handover_seconds = 0;  ///< 95th percentile
  double speedup = 1;                 ///< speedup of a float32 matrix multiplication over one thread
};

/// The number of threads is as before afterwards.
ThreadSpeed probe_threads(int64_t threads, double seconds);

/// How many times as fast as in float32 convolutions are in bfloat16; 0 where this build cannot. Draws nothing random:
/// a run may call it between updates.
double bfloat16_speed(const std::string& device, double seconds);

}  // namespace stoker::engine
