// SPDX-License-Identifier: Apache-2.0
#include "train/setup/compute_choices.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/device/device.h"
#include "engine/device/random_state.h"
#include "engine/probe/compute_probe.h"
#include "engine/probe/network_flop.h"
#include "engine/probe/training_speed.h"
#include "proof/standing.h"

namespace stoker::train {
namespace {

using core::format;

constexpr double kWorthIt = 1.1;        // fewer bits for less gain than that would be a bad bargain
constexpr double kSlower = 0.95;        // below it a warning is due
constexpr double kOtherLayout = 1.3;    // times as fast; below it the usual layout stays
constexpr double kFewerThreads = 1.25;  // times as fast; below it all CPUs compute
constexpr double kPrecisionSeconds = 0.1, kLayoutSeconds = 0.05, kThreadSeconds = 0.05;  // of measuring each way
constexpr int64_t kUsualBatch = 64;  // where the batch is not known yet

int64_t batch_of(const Settings& settings) {
  return settings.resolution().waits_for_batch ? kUsualBatch : settings.options().loader.batch_size;
}

engine::Precision precision_now(const Settings& settings, torch::Device device) {
  const bool amp = settings.options().precision.amp;
  return {device, amp, amp ? at::kBFloat16 : at::kFloat};
}

/// "1.4", "270"
std::string times_text(double factor) { return format("{:.{}f}", factor, factor < 10 ? 1 : 0); }

/// oneDNN's convolutions are made for channels last where vectors have 256 bits. Small images can be faster without,
/// but a choice that goes with the noise of a measurement would change the bits of runs that are started alike. And
/// those of replicas must not depend on the machine, nor those of deterministic runs on a measurement.
bool channels_last_is_known(const Settings& settings) {
  const config::ResolvedTrainOptions& train = settings.options().train;
  return (engine::blas_facts().onednn && settings.facts().machine.avx2) || train.replicas > 1 || train.deterministic;
}

/// A learner holds weights, gradients and what the optimizer keeps of each.
bool has_room_for_another(const TriedRun& run) {
  constexpr int64_t kCopies = 4, kPart = 8;
  int64_t bytes = 0;
  for (const at::Tensor& parameter : run.learner.model->parameters()) bytes += parameter.nbytes();
  return kCopies * bytes < run.settings.facts().machine.ram_available_bytes / kPart;
}

}  // namespace

std::optional<double> measure_amp(const TriedRun& run, const FromRoot& from_root) {
  Settings& settings = run.settings;
  const bool waits = settings.resolution().waits_for_amp;
  const config::ResolvedPrecisionOptions& precision = settings.options().precision;
  const bool was_asked_for = !settings.was_automatic(precision.amp) && precision.amp;
  const torch::Device device = run.learner.device;
  if (!device.is_cpu() || !(waits || was_asked_for)) return std::nullopt;
  const auto measure = [&] {
    engine::TrainingVariant full{&run.learner, run.noise()}, reduced = full;
    full.settings.update.precision.autocast = false;
    reduced.settings.update.precision = {device, /*autocast=*/true, at::kBFloat16};
    const std::vector<double> seconds = engine::training_seconds(
        {full, reduced}, run.task, engine::PassClock::own_thread, batch_of(settings), kPrecisionSeconds, kWorthIt);
    return format("{:.17g}", seconds[1] > 0 ? seconds[0] / seconds[1] : 0);
  };
  const double speed = std::strtod((from_root ? from_root(measure) : measure()).c_str(), nullptr);
  const std::string found = format("the network trains {:.2g} times as fast in bfloat16 as in float32", speed);
  if (waits) {
    settings.learn(&config::Facts::amp,
                   {speed >= kWorthIt, speed > 0 ? found : "bfloat16 cannot be computed on this machine"});
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

std::optional<double> measure_layout(const TriedRun& run) {
  Settings& settings = run.settings;
  if (!run.learner.device.is_cpu() || settings.facts().checkpoint || !has_room_for_another(run)) return std::nullopt;
  const bool is_last = settings.options().precision.channels_last;
  const bool is_open = settings.was_automatic(settings.options().precision.channels_last);
  if (is_open && channels_last_is_known(settings)) return std::nullopt;
  const engine::RandomState drawn = engine::random_state(torch::kCPU);
  engine::Learner other = run.build({!is_last, /*only_tried=*/true});
  engine::TrainingVariant now{&run.learner, run.noise()}, otherwise = now;
  now.settings.update.precision = precision_now(settings, run.learner.device);
  otherwise = now;
  otherwise.learner = &other;
  otherwise.settings.channels_last = !is_last;
  const std::vector<double> seconds = engine::training_seconds(
      {now, otherwise}, run.task, engine::PassClock::own_thread, batch_of(settings), kLayoutSeconds, kOtherLayout);
  engine::restore_random_state(drawn, torch::kCPU);
  if (seconds[1] == 0) return std::nullopt;
  const double speed = seconds[0] / seconds[1];
  const std::optional<double> speed_of_given = is_open ? std::nullopt : std::optional<double>(speed);
  if (speed < kOtherLayout) return speed_of_given;
  const std::string found = format("the network trains {:.2g} times as fast {} on this CPU", speed,
                                   is_last ? "channels-first" : "channels-last");
  if (!is_open) {
    core::log_warning("--{}channels-last: {}", is_last ? "" : "no-", found);
    return speed_of_given;
  }
  settings.learn(&config::Facts::channels_last, {!is_last, found});
  run.learner = run.build({!is_last, /*only_tried=*/false});
  engine::restore_random_state(drawn, torch::kCPU);
  return std::nullopt;
}

void measure_threads(const TriedRun& run) {
  Settings& settings = run.settings;
  const config::ResolvedDeviceOptions& device = settings.options().device;
  const int64_t most = device.threads;
  if (!run.learner.device.is_cpu() || settings.facts().checkpoint || most < 2) return;
  if (!settings.was_automatic(device.threads) || settings.facts().threads) return;
  if (settings.options().train.deterministic) return;  // the number of threads changes bits
  std::vector<engine::TrainingVariant> ways;
  for (int64_t threads = most; threads >= 1; threads /= 2) {
    ways.push_back({&run.learner, run.noise(), threads});
    ways.back().settings.update.precision = precision_now(settings, run.learner.device);
  }
  const std::vector<double> seconds = engine::training_seconds(ways, run.task, engine::PassClock::wall,
                                                               batch_of(settings), kThreadSeconds, kFewerThreads);
  // 0: cannot be computed
  const auto takes_less = [](double left, double right) { return left > 0 && (right <= 0 || left < right); };
  const auto best = static_cast<size_t>(std::min_element(seconds.begin(), seconds.end(), takes_less) - seconds.begin());
  if (seconds[best] <= 0 || seconds[0] < kFewerThreads * seconds[best]) return;
  settings.learn(&config::Facts::threads,
                 {ways[best].threads, format("{} times as fast now as {} threads: other work holds CPUs, or "
                                             "the network is small",
                                             times_text(seconds[0] / seconds[best]), most)});
  at::set_num_threads(static_cast<int>(ways[best].threads));
}

namespace {

constexpr double kSeconds = 0.05;  // of measuring the peak

std::string dtype_of(const config::ResolvedOptions& options) {
  if (!options.precision.amp) return "float32";
  return options.precision.amp_dtype == config::AmpDtype::float16 ? "float16" : "bfloat16";
}

}  // namespace

engine::ComputeCost compute_cost(const config::ResolvedOptions& options, engine::Learner& learner,
                                 const engine::ProbeSettings& noise, int64_t devices) {
  engine::ComputeCost cost;
  try {
    const engine::NetworkFlop flop = engine::network_flop(learner, noise);
    cost.forward_flop = flop.forward;
    cost.training_flop = flop.training;
    cost.grouped_share = flop.forward > 0 ? flop.grouped / flop.forward : 0;
    cost.product_share = flop.forward > 0 ? flop.products / flop.forward : 0;
  } catch (const core::StopRequested&) {
    throw;
  } catch (const std::exception& error) {  // a figure for people: training reports errors of the network
    core::log_debug("operations are not counted: {}", error.what());
    return cost;
  }
  // The operations of the peak measurement were not proven: where a library is wrong in places it may crash there.
  if (!proof::standing().remedy.ways.empty()) return cost;
  cost.peak_flop_per_second =
      static_cast<double>(devices) * engine::peak_flop_per_second(options.device.device, dtype_of(options), kSeconds);
  return cost;
}

std::string compute_text(const engine::ComputeCost& cost, const config::ResolvedOptions& options,
                         const std::string& one_item) {
  if (cost.training_flop <= 0) return "";
  std::string text = core::format("{:.3g} GFLOP {}, {:.3g} in training", 1e-9 * cost.forward_flop, one_item,
                                  1e-9 * cost.training_flop);
  if (cost.peak_flop_per_second > 0) {
    text += core::format("; peak {:.3g} GFLOP/s in {}", 1e-9 * cost.peak_flop_per_second, dtype_of(options));
  }
  return text;
}

}  // namespace stoker::train
