// SPDX-License-Identifier: Apache-2.0
// Single operations of augmentation by the names that scripts/parity/augment_parity.py uses, with its
// numbers.
#pragma once

#include <string>
#include <vector>

#include "data/transform/pixel_image.h"

namespace stoker::data {

/// False when there is no such operation. Interpolations are 0 (nearest) or 1 (bilinear).
bool apply_named(const std::string& operation, const std::vector<double>& numbers, const PixelImage& image);

}  // namespace stoker::data
