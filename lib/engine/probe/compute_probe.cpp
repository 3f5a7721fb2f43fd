// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/compute_probe.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "core/system/stop_signal.h"
#include "core/system/worker_pool.h"
#include "core/time/clock.h"
#include "engine/device/device.h"
#include "engine/device/random_state.h"
#include "engine/probe/probe_input.h"

namespace stoker::engine {

CallRateSettings call_rate_on_cpu(double seconds) { return {seconds, /*warm_up_calls=*/0, /*calls_per_look=*/1}; }

CallRateSettings call_rate_on_gpu(double seconds) { return {seconds, /*warm_up_calls=*/2, /*calls_per_look=*/10}; }

double call_rate(const std::function<void()>& call, const std::function<void()>& finish,
                 const CallRateSettings& settings, const std::function<double()>& now) {
  for (int64_t i = 0; i < settings.warm_up_calls; ++i) {
    call();
    finish();
  }
  double begin = now();
  if (settings.warm_up_calls == 0) {
    call();
    finish();
    const double first = now() - begin;
    if (first > settings.seconds) return 1 / first;
    begin = now();
  }
  int64_t calls = 0;
  double elapsed = 0;
  do {
    core::throw_if_stopped();
    for (int64_t i = 0; i < settings.calls_per_look; ++i) call();
    finish();
    calls += settings.calls_per_look;
    elapsed = now() - begin;
  } while (elapsed < settings.seconds);
  return static_cast<double>(calls) / elapsed;
}

namespace {

using Clock = std::chrono::steady_clock;

/// Calls per second.
double rate_of(const std::function<void()>& call, torch::Device device, double seconds) {
  const auto now = [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); };
  return call_rate(
      call, [device] { synchronize(device); }, device.is_cuda() ? call_rate_on_gpu(seconds) : call_rate_on_cpu(seconds),
      now);
}

/// Numbers as networks have them: a GPU draws less power for ones, and keeps a higher clock than it will in training.
/// From a separate generator, so that a run's random numbers stay what they were.
torch::Tensor noise(at::IntArrayRef sizes, const torch::TensorOptions& options) {
  at::Generator generator = make_generator(/*seed=*/1, torch::kCPU);
  return torch::randn(sizes, generator, torch::TensorOptions().dtype(torch::kFloat32)).to(options);
}

double matmul_gflops(torch::Device device, torch::ScalarType dtype, double seconds) {
  const int64_t n = device.is_cuda() ? 4096 : 512;
  const auto options = torch::TensorOptions().device(device).dtype(dtype);
  const torch::Tensor a = noise({n, n}, options), b = noise({n, n}, options);  // [n, n]
  torch::Tensor c = torch::empty({n, n}, options);
  const double operations = 2.0 * static_cast<double>(n * n * n);
  return 1e-9 * operations * rate_of([&] { torch::mm_out(c, a, b); }, device, seconds);
}

double convolution_gflops(torch::Device device, torch::ScalarType dtype, bool channels_last, double seconds,
                          int64_t cpu_batch = 8) {
  constexpr int64_t kChannels = 64, kSize = 56;
  const int64_t batch = device.is_cuda() ? 128 : cpu_batch;
  const auto format = channels_last ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous;
  const auto options = torch::TensorOptions().device(device).dtype(dtype);
  const torch::Tensor images = noise({batch, kChannels, kSize, kSize}, options).contiguous(format);
  const torch::Tensor weight = noise({kChannels, kChannels, 3, 3}, options).contiguous(format);
  const double operations = 2.0 * 9 * static_cast<double>(batch * kSize * kSize * kChannels * kChannels);
  const auto call = [&] { torch::conv2d(images, weight, {}, /*stride=*/1, /*padding=*/1); };
  return 1e-9 * operations * rate_of(call, device, seconds);
}

/// 0 when LibTorch has no kernel for it.
double or_none(const std::function<double()>& measure) {
  try {
    return measure();
  } catch (const c10::Error&) {
    return 0;
  }
}

}  // namespace

std::vector<ComputeSpeed> probe_compute(const std::string& device_name, double seconds_each) {
  const torch::NoGradGuard no_grad;
  const torch::Device device = open_device(device_name);
  const std::pair<const char*, torch::ScalarType> kTypes[] = {
      {"float32", torch::kFloat32}, {"bfloat16", torch::kBFloat16}, {"float16", torch::kFloat16}};
  std::vector<ComputeSpeed> speeds;
  for (const auto& [name, dtype] : kTypes) {
    const torch::ScalarType type = dtype;
    speeds.push_back({"matmul", name, false, or_none([&] { return matmul_gflops(device, type, seconds_each); })});
  }
  for (const auto& [name, dtype] : kTypes) {
    const torch::ScalarType type = dtype;
    for (const bool channels_last : {false, true}) {
      speeds.push_back({"convolution", name, channels_last,
                        or_none([&] { return convolution_gflops(device, type, channels_last, seconds_each); })});
    }
  }
  return speeds;
}

double peak_flop_per_second(const std::string& device_name, const std::string& dtype, double seconds) {
  constexpr int kParts = 3;
  const torch::NoGradGuard no_grad;
  const torch::Device device = open_device(device_name);
  const int64_t images = at::get_num_threads();  // little memory, which counts in small runs
  const torch::ScalarType type =
      dtype == "bfloat16" ? torch::kBFloat16 : (dtype == "float16" ? torch::kFloat16 : torch::kFloat32);
  double best = 0;
  for (int part = 0; part < kParts; ++part) {
    best = std::max(best, or_none([&] { return matmul_gflops(device, type, seconds / kParts / 2); }));
    best = std::max(best, or_none([&] {
                      return convolution_gflops(device, type, /*channels_last=*/true, seconds / kParts / 2, images);
                    }));
  }
  return 1e9 * best;
}

ThreadSpeed probe_threads(int64_t threads, double seconds) {
  core::require_threads(3 * threads + 1);  // LibTorch's pool, twice while it is made anew, and OpenMP's
  const torch::NoGradGuard no_grad;
  ThreadSpeed speed;
  speed.threads = threads;
  const ThreadCount count(1);
  const double alone = matmul_gflops(torch::kCPU, torch::kFloat32, seconds / 3);
  count.set(threads);
  if (threads < 2) return speed;
  speed.speedup = matmul_gflops(torch::kCPU, torch::kFloat32, seconds / 3) / alone;
  // LibTorch gives a thread at least 32768 elements: some 10 us of work.
  torch::Tensor vector = torch::ones({threads * 32768});  // [threads x 32768]
  vector.neg_();                                          // wakes the threads
  std::vector<double> handovers;
  const Clock::time_point begin = Clock::now();
  while (handovers.size() < 5000 && core::seconds_since(begin) < seconds / 3) {
    const Clock::time_point one = Clock::now();
    vector.neg_();
    handovers.push_back(core::seconds_since(one));
  }
  std::sort(handovers.begin(), handovers.end());
  speed.handover_seconds = handovers[handovers.size() / 2];
  speed.worst_handover_seconds = handovers[handovers.size() * 95 / 100];
  return speed;
}

double bfloat16_speed(const std::string& device_name, double seconds) {
  const torch::NoGradGuard no_grad;
  const torch::Device device = open_device(device_name);
  const double float32 =
      convolution_gflops(device, torch::kFloat32, /*channels_last=*/true, seconds / 2, /*cpu_batch=*/1);
  const double bfloat16 = or_none([&] {
    return convolution_gflops(device, torch::kBFloat16, /*channels_last=*/true, seconds / 2, /*cpu_batch=*/1);
  });
  return float32 > 0 ? bfloat16 / float32 : 0;
}

}  // namespace stoker::engine
