// SPDX-License-Identifier: Apache-2.0
// How the memory that a device takes at most grows with images, from a few numbers of them. Torch-free.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/memory/allocation_trace.h"

namespace stoker::engine {

struct PeakLine {
  TracedWork small, large;  ///< one block each: the peaks that the line goes through
  bool settled = false;     ///< more images follow the line; else they may take more than it predicts
};

/// Calls `peak_of` (bytes on `images` images) for growing numbers of images, twice each: the first time of a shape also
/// holds what libraries allocate once for it. A peak is the largest of several moments, each of which grows
/// linearly: for few images it may be the one when all gradients are there, whatever the images. So numbers are doubled
/// from `first` until two steps in a row have the same slope within 10 % and images make up at least half of the peak,
/// until `most` (at least `first`), or until memory runs out, which `is_too_much` distinguishes from other exceptions.
/// Where that leaves one number, half of it is tried, too; of 1 image that is 1 again. Throws what `peak_of` throws
/// where less than two numbers can be had.
PeakLine peak_line(const std::function<int64_t(int64_t images)>& peak_of, int64_t first, int64_t most,
                   const std::function<bool(const std::exception&)>& is_too_much);

}  // namespace stoker::engine
