// SPDX-License-Identifier: Apache-2.0
// The part of an image that matters, as annotations give it.
#pragma once

namespace stoker::data {

struct FaceBox {
  double left = 0, top = 0, width = 0,
         height = 0;  ///< pixels; may reach outside of the image; width 0: all of it
};

}  // namespace stoker::data
