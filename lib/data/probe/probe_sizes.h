// SPDX-License-Identifier: Apache-2.0
// What the images of a source are like, from the headers of a few.
#pragma once

#include <cstdint>

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

/// Of the images with more than 8 bits.
struct RangeProbe {
  int64_t images = 0;        ///< that were looked at
  double low = 0, high = 0;  ///< 0.1 and 99.9 % of their numbers lie below
  bool is_narrow = false;    ///< these fill less than a sixteenth of the range of their kind, or leave it
};
/// Of up to 100 evenly spaced samples; decodes those alone whose header has more than 8 bits.
RangeProbe probe_range(const Source& source, double max_image_megapixels);

}  // namespace stoker::data
