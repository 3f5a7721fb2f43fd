// SPDX-License-Identifier: Apache-2.0
#include "data/resample/resample_rows.h"

#include <algorithm>

namespace stoker::data {
namespace {

constexpr int32_t kHalfWeight = 1 << (kWeightBits - 1);

uint8_t clipped_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

template <int kChannels>
void narrow_row_of(const uint8_t* in, const AxisWeights& columns, int outputs, uint8_t* out) {
  for (int i = 0; i < outputs; ++i) {
    const uint8_t* pixel = in + static_cast<int64_t>(columns.first[static_cast<size_t>(i)]) * kChannels;
    const int32_t* const weights = columns.weights.data() + static_cast<int64_t>(i) * columns.stride;
    int32_t sums[kChannels];
    for (int c = 0; c < kChannels; ++c) sums[c] = kHalfWeight;
    for (int t = 0; t < columns.count[static_cast<size_t>(i)]; ++t, pixel += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += pixel[c] * weights[t];
    }
    for (int c = 0; c < kChannels; ++c) *out++ = clipped_byte(sums[c]);
  }
}

}  // namespace

void narrow_row(const uint8_t* in, int channels, const AxisWeights& columns, int outputs, uint8_t* out) {
  if (channels == 3) {
    narrow_row_of<3>(in, columns, outputs, out);
  } else {
    narrow_row_of<1>(in, columns, outputs, out);
  }
}

void merge_rows(const uint8_t* in, int64_t stride, const int32_t* weights, int count, int64_t bytes, uint8_t* out) {
  constexpr int64_t kBlock = 256;
  int32_t sums[kBlock];
  for (int64_t start = 0; start < bytes; start += kBlock) {
    const int64_t n = std::min(kBlock, bytes - start);
    std::fill(sums, sums + n, kHalfWeight);
    for (int t = 0; t < count; ++t) {
      const uint8_t* const row = in + t * stride + start;
      const int32_t weight = weights[t];
      for (int64_t i = 0; i < n; ++i) sums[i] += row[i] * weight;
    }
    for (int64_t i = 0; i < n; ++i) out[start + i] = clipped_byte(sums[i]);
  }
}

}  // namespace stoker::data
