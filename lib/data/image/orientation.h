// SPDX-License-Identifier: Apache-2.0
// EXIF orientation: turning stored pixels the way the camera was held.
#pragma once

#include "data/image/pixels/image_buffer.h"

namespace stoker::data {

/// Turns and mirrors `image` so that it stands upright; `orientation` is EXIF's 1..8 (1: nothing to do).
void apply_orientation(int orientation, ImageBuffer& image);

}  // namespace stoker::data
