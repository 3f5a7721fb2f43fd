// SPDX-License-Identifier: Apache-2.0
// Pixels to normalised floats in one pass over memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker::data {

/// Throws Error{config} unless mean and std each have `channels` values: what reads them per channel would run past
/// their ends.
void require_per_channel(const std::vector<double>& mean, const std::vector<double>& std, int64_t channels);

/// For each channel the 256 values (u / 255 - mean) / std, computed in double and rounded once. Throws Error{config}
/// unless mean and std are of one size.
using NormalTable = std::vector<std::array<float, 256>>;
NormalTable make_normal_table(const std::vector<double>& mean, const std::vector<double>& std);

/// `pixels`: HWC rows of `images` images of `area` pixels with `channels` channels, 1 or 3. `out` has the same order
/// (channels_last) or CHW per image. Throws Error{config} unless `table` is for `channels` channels.
void normalise(const uint8_t* pixels, int64_t images, int64_t area, int64_t channels, const NormalTable& table,
               bool channels_last, float* out);

/// x * scale + offset, per channel: (x - mean) / std of numbers that are floats already, whatever their range.
struct NormalLine {
  std::vector<float> scale, offset;
};
/// Throws Error{config} unless mean and std are of one size.
NormalLine make_normal_line(const std::vector<double>& mean, const std::vector<double>& std);

/// Normalises floats that lie as the bytes above do, with any number of channels. Throws Error{config} unless `line` is
/// for `channels` channels.
void normalise(const float* pixels, int64_t images, int64_t area, int64_t channels, const NormalLine& line,
               bool channels_last, float* out);

}  // namespace stoker::data
