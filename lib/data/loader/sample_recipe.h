// SPDX-License-Identifier: Apache-2.0
// What is drawn of a sample whose pixels lie on the device already: which one, where its window begins, mirrored or
// not.
#pragma once

#include <cstdint>

#include "data/sample_shape.h"

namespace stoker::data {

/// How images lie where they stay: all of one size, within a border of zeros.
struct StoredImages {
  int height = 0, width = 0;  ///< pixels, without the border
  int border = 0;             ///< pixels on each side
};

/// A row of a batch instead of pixels; the window has the size of the plan's shape.
struct SampleRecipe {
  int32_t sample = 0;
  int32_t top = 0, left = 0;  ///< of the window in the stored image, its border included
  int32_t flip = 0;           ///< 1: mirrored
};

/// Of a row that holds a recipe: 4 numbers, as bytes.
constexpr SampleShape recipe_shape() { return {0, 1, sizeof(SampleRecipe), 1, Element::uint8}; }

}  // namespace stoker::data
