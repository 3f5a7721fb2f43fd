// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/call_rate.h"

#include "core/system/stop_signal.h"

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

}  // namespace stoker::engine
