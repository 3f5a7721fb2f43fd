// SPDX-License-Identifier: Apache-2.0
// What training computes, and what the devices of a run could: plain values, from which the share of the peak that a
// run reaches follows.
#pragma once

#include <optional>

namespace stoker::engine {

struct ComputeCost {
  double forward_flop = 0;          ///< of one image or clip: additions and multiplications, each counted
  double training_flop = 0;         ///< of one image or clip: forward and backward; 0: not known
  double peak_flop_per_second = 0;  ///< of all devices of the run together, in its precision, measured; 0: not known
  double grouped_share = 0;         ///< of forward_flop: convolutions of several groups, as depthwise ones are; 0 to 1
  double product_share = 0;         ///< of forward_flop: matrix products, as linear layers and attention are; 0 to 1
};

/// Model FLOPs utilization: the share of the peak that training at this rate needs, 0 to about 1. Absent where either
/// side is not known, and where the rate is far above the peak, which was measured while others kept the devices busy
/// then. After PaLM (Chowdhery et al. 2022, appendix B); recomputed activations do not count.
inline std::optional<double> utilization(const ComputeCost& cost, double images_per_second) {
  if (cost.training_flop <= 0 || cost.peak_flop_per_second <= 0) return std::nullopt;
  constexpr double kMax = 1.1;  // clocks move by some percent
  const double share = images_per_second * cost.training_flop / cost.peak_flop_per_second;
  return share <= kMax ? std::optional<double>(share) : std::nullopt;
}

}  // namespace stoker::engine
