// SPDX-License-Identifier: Apache-2.0
// Orientation: where it stands, and turning stored pixels the way the camera was held.
#pragma once

#include "data/image/pixels/image_buffer.h"
#include "data/storage/byte_view.h"

namespace stoker::data {

/// The orientation in EXIF, a TIFF structure; 0 when it has none or is damaged.
int exif_orientation(const ByteView& exif);
/// The orientation in an XMP packet; 0 when it has none.
int xmp_orientation(const ByteView& xmp);
/// Turns and mirrors `image` so that it stands upright; `orientation` is EXIF's 1..8 (1: nothing to do).
void apply_orientation(int orientation, ImageBuffer& image);

}  // namespace stoker::data
