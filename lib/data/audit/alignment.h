// SPDX-License-Identifier: Apache-2.0
// Whether one picture shows a window of another: the window is shifted and stretched until both agree best, and their
// details are compared. Uses thumbnails, not hashes.
#pragma once

#include "data/audit/picture_window.h"
#include "data/audit/thumbnail.h"

namespace stoker::data {

/// Agreement of the details (neither the mean, nor brightness that changes slowly, nor noise) of `copy` and of the part
/// of `original` that fits it best, looked for around `window`: -1 to 1, a correlation that other contrast lowers, too.
/// `detail_side`: pixels of the smaller of the two pictures along its shorter side, which limits the details.
///
/// The fit is that of Lucas and Kanade ("An Iterative Image Registration Technique", 1981) with four numbers for the
/// window and two for brightness and contrast. Copies agree by 0.9 and more, other photographs by 0.8 at most.
double aligned_agreement(const Thumbnail& original, const Thumbnail& copy, const PictureWindow& window,
                         int detail_side);

}  // namespace stoker::data
