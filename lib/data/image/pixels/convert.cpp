// SPDX-License-Identifier: Apache-2.0
#include "data/image/pixels/convert.h"

#include <algorithm>

namespace stoker::data {

void convert_channels(const uint8_t* pixels, int64_t count, int from, int to, std::vector<uint8_t>& out) {
  const auto needed = static_cast<size_t>(count * to);
  if (out.size() < needed) out.resize(needed);
  if (from == to) {
    std::copy(pixels, pixels + count * from, out.begin());
  } else if (to == 3) {
    for (int64_t i = 0; i < count; ++i) std::fill_n(out.data() + 3 * i, 3, pixels[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      out[static_cast<size_t>(i)] = luma(pixels[3 * i], pixels[3 * i + 1], pixels[3 * i + 2]);
    }
  }
}

}  // namespace stoker::data
