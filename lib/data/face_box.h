// SPDX-License-Identifier: Apache-2.0
// The part of an image that matters, as annotations give it.
#pragma once

namespace stoker::data {

struct FaceBox {
  /// Pixels, finite; may reach outside of the image; width 0: all of it.
  double left = 0, top = 0, width = 0, height = 0;
};

}  // namespace stoker::data
