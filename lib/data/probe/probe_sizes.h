// SPDX-License-Identifier: Apache-2.0
// Sizes and kinds of the images of a source, from the headers of a few.
#pragma once

#include <cstdint>
#include <vector>

#include "data/source.h"

namespace stoker::data {

struct SizeProbe {
  int64_t channels = 0;                         ///< the most common: 1 or 3
  int64_t median_height = 0, median_width = 0;  ///< pixels, as stored
  bool has_wide = false;                        ///< some have more than 8 bits
};

/// Looks at up to 100 evenly spaced samples; unreadable ones are left out. Throws core::Error{data} when none can be
/// read, core::StopRequested.
SizeProbe probe_sizes(const Source& source, double max_image_megapixels);

/// The range of the images with more than 8 bits.
struct RangeProbe {
  int64_t images = 0;        ///< that were looked at
  double low = 0, high = 0;  ///< 0.1 and 99.9 % of their numbers lie below
  bool is_narrow = false;    ///< these fill less than a sixteenth of the range of their kind, or leave it
};
/// From up to 100 evenly spaced samples; decodes those alone whose header has more than 8 bits.
RangeProbe probe_range(const Source& source, double max_image_megapixels);

// Samples that are floats, or that are neither gray nor RGB: their mean and deviation, and pictures of them.

struct InputStatistics {
  std::vector<double> mean,
      deviation;  ///< per channel, of floats as they are, of bytes in [0, 1]; empty for images, gray and RGB bytes
  int64_t samples = 0;  ///< that were looked at
};

/// From at most 2,000 samples: 100 places spread evenly, and 20 neighbours at each, so that chunks are decoded
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
