// SPDX-License-Identifier: Apache-2.0
// Mean and deviation of samples that are floats, or that are neither gray nor RGB, from some of them.
#pragma once

#include <cstdint>
#include <vector>

#include "data/source.h"

namespace stoker::data {

struct InputStatistics {
  std::vector<double> mean,
      deviation;  ///< per channel, of floats as they are, of bytes in [0, 1]; empty for images, gray and RGB bytes
  int64_t samples = 0;  ///< that were looked at
};

/// Of at most 2,000 samples: 100 places spread evenly, and 20 neighbours at each, so that chunks are decoded
/// once. The same for the same data. Throws core::Error{data} for a number that is not finite, and what
/// Source::read throws.
InputStatistics measure_inputs(const Source& source);

}  // namespace stoker::data
