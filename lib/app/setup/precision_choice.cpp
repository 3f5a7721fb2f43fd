// SPDX-License-Identifier: Apache-2.0
#include "app/setup/precision_choice.h"

#include <cstdlib>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "engine/probe/precision_speed.h"

namespace stoker::app {
namespace {

using core::format;

constexpr double kWorthIt = 1.1;     // fewer bits for less gain than that would be a bad bargain
constexpr double kSlower = 0.95;     // below it a warning is due
constexpr double kSeconds = 0.3;     // of measuring
constexpr int64_t kUsualBatch = 64;  // where the batch is not known yet

}  // namespace

std::optional<double> measure_amp(Settings& settings, engine::Learner& learner, const engine::Task& task,
                                  const engine::ProbeSettings& noise, const FromRoot& from_root) {
  const bool waits = settings.resolution().waits_for_amp;
  const bool was_asked_for = !settings.given().options.precision.amp.is_auto() && settings.options().precision.amp;
  if (!learner.device.is_cpu() || !(waits || was_asked_for)) return std::nullopt;
  const engine::Precision bfloat16{learner.device, /*autocast=*/true, at::kBFloat16};
  const int64_t batch_size = settings.resolution().waits_for_batch ? kUsualBatch : settings.options().loader.batch_size;
  const auto measure = [&] {
    return format("{:.17g}", engine::precision_speed(learner, task, noise, bfloat16, batch_size, kSeconds));
  };
  const double speed = std::strtod((from_root ? from_root(measure) : measure()).c_str(), nullptr);
  const std::string found = format("the network trains {:.2g} times as fast in bfloat16 as in float32", speed);
  if (waits) {
    settings.learn_amp({speed >= kWorthIt, speed > 0 ? found : "bfloat16 cannot be computed here"});
    return speed;
  }
  if (speed == 0) {
    throw core::Error(core::ErrorKind::unavailable,
                      "--amp: this CPU or this LibTorch cannot train the network in bfloat16",
                      "use --no-amp, or --amp auto");
  }
  if (speed < kSlower) core::log_warning("--amp: on this CPU {}; --amp auto would choose --no-amp", found);
  return speed;
}

}  // namespace stoker::app
