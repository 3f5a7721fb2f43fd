// SPDX-License-Identifier: Apache-2.0
#include "train/setup/compute_cost.h"

#include <exception>

#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/probe/compute_probe.h"
#include "engine/probe/network_flop.h"
#include "proof/standing.h"

namespace stoker::train {
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
  // What is measured for the peak was not proven: where a library is wrong in places it may crash there.
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
