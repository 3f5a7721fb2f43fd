// SPDX-License-Identifier: Apache-2.0
#include "data/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stoker::data {
namespace {

// Sums of 8-bit pixels times weights that add up to 1 must fit 32 bits with sign and room for rounding.
constexpr int kWeightBits = 22;
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t clipped_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

/// Weights for outputs window..window+outputs of an axis resized from `in` to `resized` pixels.
void compute_axis(int in, int resized, int window, int outputs, bool mirror, AxisWeights& axis) {
  const double scale = static_cast<double>(in) / resized;
  const double radius = std::max(scale, 1.0);
  axis.stride = 2 * static_cast<int>(std::ceil(radius)) + 1;
  axis.first.resize(static_cast<size_t>(outputs));
  axis.count.resize(static_cast<size_t>(outputs));
  axis.weights.resize(static_cast<size_t>(outputs) * static_cast<size_t>(axis.stride));
  std::vector<double> exact(static_cast<size_t>(axis.stride));
  for (int i = 0; i < outputs; ++i) {
    const double center = (window + (mirror ? outputs - 1 - i : i) + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - radius + 0.5));
    const int count = std::min(in, static_cast<int>(center + radius + 0.5)) - first;
    double total = 0;
    for (int t = 0; t < count; ++t) {
      const double distance = std::abs((first + t - center + 0.5) / radius);
      exact[static_cast<size_t>(t)] = distance < 1 ? 1 - distance : 0;
      total += exact[static_cast<size_t>(t)];
    }
    int32_t* const weights = axis.weights.data() + static_cast<int64_t>(i) * axis.stride;
    for (int t = 0; t < count; ++t) {
      weights[t] = static_cast<int32_t>(0.5 + exact[static_cast<size_t>(t)] / total * (1 << kWeightBits));
    }
    axis.first[static_cast<size_t>(i)] = first;
    axis.count[static_cast<size_t>(i)] = count;
  }
}

template <int kChannels>
void narrow_row(const uint8_t* in, const AxisWeights& axis, int outputs, uint8_t* out) {
  for (int i = 0; i < outputs; ++i) {
    const uint8_t* pixel = in + static_cast<int64_t>(axis.first[static_cast<size_t>(i)]) * kChannels;
    const int32_t* const weights = axis.weights.data() + static_cast<int64_t>(i) * axis.stride;
    int32_t sums[kChannels];
    for (int c = 0; c < kChannels; ++c) sums[c] = kHalf;
    for (int t = 0; t < axis.count[static_cast<size_t>(i)]; ++t, pixel += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += pixel[c] * weights[t];
    }
    for (int c = 0; c < kChannels; ++c) *out++ = clipped_byte(sums[c]);
  }
}

/// Sums whole rows: contiguous in memory, so that the compiler vectorises over bytes.
void merge_rows(const uint8_t* in, int64_t stride, const int32_t* weights, int count, int64_t bytes, uint8_t* out) {
  constexpr int64_t kBlock = 256;
  int32_t sums[kBlock];
  for (int64_t start = 0; start < bytes; start += kBlock) {
    const int64_t n = std::min(kBlock, bytes - start);
    std::fill(sums, sums + n, kHalf);
    for (int t = 0; t < count; ++t) {
      const uint8_t* const row = in + t * stride + start;
      const int32_t weight = weights[t];
      for (int64_t i = 0; i < n; ++i) sums[i] += row[i] * weight;
    }
    for (int64_t i = 0; i < n; ++i) out[start + i] = clipped_byte(sums[i]);
  }
}

}  // namespace

void resample(const ResampleTask& task, ResampleScratch& scratch, uint8_t* out) {
  compute_axis(task.source_width, task.resized_width, task.window_left, task.out_width, task.mirror,
               scratch.columns);
  compute_axis(task.source_height, task.resized_height, task.window_top, task.out_height, false, scratch.rows);
  // Only the source rows that the window's outputs read.
  const int top = scratch.rows.first.front();
  const int bottom = scratch.rows.first.back() + scratch.rows.count.back();
  const int64_t out_stride = static_cast<int64_t>(task.out_width) * task.channels;
  const size_t needed = static_cast<size_t>(out_stride) * static_cast<size_t>(bottom - top);
  if (scratch.narrowed.size() < needed) scratch.narrowed.resize(needed);
  for (int y = top; y < bottom; ++y) {
    const uint8_t* const row = task.source + y * task.source_stride;
    uint8_t* const narrowed = scratch.narrowed.data() + (y - top) * out_stride;
    if (task.channels == 3) {
      narrow_row<3>(row, scratch.columns, task.out_width, narrowed);
    } else {
      narrow_row<1>(row, scratch.columns, task.out_width, narrowed);
    }
  }
  for (int y = 0; y < task.out_height; ++y) {
    const auto i = static_cast<size_t>(y);
    merge_rows(scratch.narrowed.data() + (scratch.rows.first[i] - top) * out_stride, out_stride,
               scratch.rows.weights.data() + static_cast<int64_t>(y) * scratch.rows.stride, scratch.rows.count[i],
               out_stride, out + y * out_stride);
  }
}

}  // namespace stoker::data
