// SPDX-License-Identifier: Apache-2.0
// uint8 pixels to normalised floats in one pass over memory. Knows nothing of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker::data {

/// For each channel the 256 values (u / 255 - mean) / std, computed in double and rounded once.
using NormalTable = std::vector<std::array<float, 256>>;
NormalTable make_normal_table(const std::vector<double>& mean, const std::vector<double>& std);

/// `pixels`: HWC rows of `images` images of `area` pixels. `out` has the same order (channels_last) or CHW
/// per image.
void normalise(const uint8_t* pixels, int64_t images, int64_t area, const NormalTable& table,
               bool channels_last, float* out);

}  // namespace stoker::data
