// SPDX-License-Identifier: Apache-2.0
// A picture as 32 x 32 gray pixels, whatever its size and shape: near duplicates are found by it.
#pragma once

#include <array>
#include <cstdint>

#include "data/resample/resample.h"

namespace stoker::data {

inline constexpr int kThumbnailSide = 32;

/// Rows of gray values.
using Thumbnail = std::array<uint8_t, kThumbnailSide * kThumbnailSide>;

/// The whole picture, each axis resized for itself. gray [height, width].
Thumbnail thumbnail_of(const uint8_t* gray, int width, int height, ResampleScratch& scratch);

/// Standard deviation of the gray values.
double contrast_of(const Thumbnail& thumbnail);

}  // namespace stoker::data
