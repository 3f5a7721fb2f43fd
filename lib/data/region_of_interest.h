// SPDX-License-Identifier: Apache-2.0
// The part of an image that crops are taken from, as annotations give it.
#pragma once

namespace stoker::data {

/// Finite, in pixels of the image as shown, upright. May reach outside of the image. Width 0: the whole image.
struct RegionOfInterest {
  double left = 0, top = 0, width = 0, height = 0;  ///< finite
};

}  // namespace stoker::data
