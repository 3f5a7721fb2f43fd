// SPDX-License-Identifier: Apache-2.0
// Samples that are floats, or that are neither gray nor RGB: their mean and deviation, and pictures of them.
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

/// 8 bits, packed.
struct Picture {
  int64_t height = 0, width = 0, channels = 0;  ///< 1 (gray) or 3 (RGB)
  std::vector<uint8_t> pixels;
};

/// An image of a sample as something to look at: gray and RGB bytes as they are; of other numbers the range from the
/// least to the greatest is stretched over black to white, of three or more channels the first three are red, green and
/// blue, of two the first is gray. What is not finite is black. `image`: as SampleShape has one. `longest_side`: larger
/// pictures are averaged down to it; 0: none is.
Picture picture_of(const uint8_t* image, const SampleShape& shape, int64_t longest_side = 0);

}  // namespace stoker::data
