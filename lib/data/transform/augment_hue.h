// SPDX-License-Identifier: Apache-2.0
// Turning the hue. By how much is drawn in augment.h.
#pragma once

#include "data/transform/square_image.h"

namespace stoker::data {

/// Moves the hue by `turn` of the full circle, -0.5 to 0.5, through 8-bit HSV as Pillow converts it: the
/// bytes of torchvision.transforms.functional.adjust_hue on PIL images. A gray image stays as it is.
void adjust_hue(const SquareImage& image, double turn);

}  // namespace stoker::data
