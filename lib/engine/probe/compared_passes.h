// SPDX-License-Identifier: Apache-2.0
// The order of passes when ways of training are compared, so that neither what a first pass makes nor a neighbour's
// burst decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace stoker::engine {

constexpr double kVeryLongPass = 0.4;  ///< seconds; where one takes longer, one is enough

struct ComparedPasses {
  size_t ways = 0;
  std::function<void(size_t way, int64_t images)> take;  ///< from now on this way computes `images` images
  std::function<void(size_t way)> begin_turn;            ///< before passes of another way than the last one
  std::function<double(size_t way)> pass;                ///< computes; returns seconds
  std::function<bool(size_t way)> can_pass;              ///< computes once; false: this way cannot be computed here
  bool turns_disturb = false;  ///< the first pass of a turn is slower than the others: threads are made anew
  bool takes_median = false;   ///< of several passes; else the least
  /// As many times as fast as the first way another one is to be, to be chosen; 0: nothing is chosen.
  double gain_that_counts = 0;
};

/// Seconds of a pass over the same number of images for each way, 0 for one that cannot be computed. A way's first
/// pass, which makes plans and buffers, is never counted, nor is the first of a turn where turns disturb. The ways have
/// turns in two rounds, each of one counted pass or more, until a way has about `least_seconds` of them. There is no
/// second round where the first decides clearly; for another way than the first, only passes that neighbours do not
/// disturb can decide (the least, not the median). The images are doubled, from 2 up to `batch_size`,
/// until a pass of the first way takes some time; numbers for which it cannot take as long, by the time of 2, are left
/// out. Where one of 2 images takes long, there is one counted pass for each way, and a way that is far slower than the
/// best is the last: those after it, with fewer threads still, count as slow as that one. Throws what the first way and
/// `take` throw.
std::vector<double> compared_seconds(const ComparedPasses& passes, int64_t batch_size, double least_seconds);

}  // namespace stoker::engine
