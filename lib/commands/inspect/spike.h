// SPDX-License-Identifier: Apache-2.0
// Where the numbers of a series stand out from those before them. Depends on numbers only.
#pragma once

#include <cstddef>
#include <vector>

namespace stoker::train {

/// Of finite `values`; 0 where there are none.
double median_of(std::vector<double> values);

/// values[i] as a multiple of what is usual, where it is more than `factor` times that and far outside of the usual
/// spread; else 0. Usual is the median of up to 50 numbers before it. Where fewer than 4 are, it must stand out from
/// those after it as well, so that the high start of a run is none, or 10 times as far where there are hardly any after
/// it. What is not finite is left out.
double spike(const std::vector<double>& values, size_t i, double factor);

/// Numbers that stand out, with at most two in between that do not.
struct Episode {
  size_t begin = 0, end = 0;  ///< the first and the last
  size_t peak = 0;            ///< the largest, or the first that is not finite
  double most = 0;            ///< the peak as a multiple of what was usual before `begin`; may be infinite
};
/// In order. What was usual before an episode is what all of it is compared with. A number that is not finite stands
/// out.
std::vector<Episode> episodes_of(const std::vector<double>& values, double factor);

}  // namespace stoker::train
