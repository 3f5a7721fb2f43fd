// SPDX-License-Identifier: Apache-2.0
// Pixels to normalised floats in one pass over memory. Knows nothing of tensors.
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
void normalise(const uint8_t* pixels, int64_t images, int64_t area, const NormalTable& table, bool channels_last,
               float* out);

/// x * scale + offset, per channel: (x - mean) / std of numbers that are floats already, whatever their range.
struct NormalLine {
  std::vector<float> scale, offset;
};
NormalLine make_normal_line(const std::vector<double>& mean, const std::vector<double>& std);

/// The same of floats, of any number of channels.
void normalise(const float* pixels, int64_t images, int64_t area, const NormalLine& line, bool channels_last,
               float* out);

}  // namespace stoker::data
