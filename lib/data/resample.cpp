// SPDX-License-Identifier: Apache-2.0
#include "data/resample.h"

#include <algorithm>
#include <cmath>

#include "data/resample_kernels.h"
#include "data/scratch.h"

namespace stoker::data {
namespace {

/// Weights for outputs window..window+outputs of an axis resized from `in` to `resized` pixels.
void compute_axis(int in, int resized, int window, int outputs, bool mirror, AxisWeights& axis) {
  const double scale = static_cast<double>(in) / resized;
  const double radius = std::max(scale, 1.0);
  axis.stride = 2 * static_cast<int>(std::ceil(radius)) + 1;
  axis.most_taps = 0;
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
    axis.most_taps = std::max(axis.most_taps, count);
  }
}

void pair_weights(const AxisWeights& axis, PairedWeights& paired) {
  constexpr int32_t kLowMask = (1 << PairedWeights::kLowBits) - 1;
  const size_t outputs = axis.first.size();
  paired.pairs = (axis.most_taps + 1) / 2;
  paired.first.assign(axis.first.begin(), axis.first.end());
  paired.high_and_low.resize(outputs * static_cast<size_t>(paired.pairs) * 2);
  int32_t* out = paired.high_and_low.data();
  for (size_t i = 0; i < outputs; ++i) {
    const int32_t* const weights = axis.weights.data() + static_cast<int64_t>(i) * axis.stride;
    for (int t = 0; t < 2 * paired.pairs; t += 2) {
      const int32_t even = t < axis.count[i] ? weights[t] : 0,
                    odd = t + 1 < axis.count[i] ? weights[t + 1] : 0;
      *out++ = even >> PairedWeights::kLowBits | odd >> PairedWeights::kLowBits << 16;
      *out++ = (even & kLowMask) | (odd & kLowMask) << 16;
    }
  }
}

/// How many rows of the source may be read `bytes` from their beginning without leaving it.
int readable_rows(const ResampleTask& task, int64_t bytes) {
  const int64_t whole =
      (task.source_height - 1) * task.source_stride + int64_t{task.source_width} * task.channels;
  return whole < bytes ? 0 : static_cast<int>((whole - bytes) / task.source_stride) + 1;
}

/// The horizontal pass over source rows top..bottom, to rows `stride` bytes apart.
void narrow_rows(const ResampleTask& task, ResampleScratch& scratch, int top, int bottom, int64_t stride,
                 bool use_simd, uint8_t* out) {
  const AxisWeights& columns = scratch.columns;
  int y = top;
#if defined(__x86_64__)
  if (use_simd && task.channels == 3) {
    pair_weights(columns, scratch.paired_columns);
    const int last = std::max(columns.first.front(), columns.first.back());
    const int readable =
        readable_rows(task, int64_t{3} * last + bytes_of_pairs(scratch.paired_columns.pairs));
    for (; y + 4 <= std::min(bottom, readable); y += 4) {
      narrow_four_rows_avx2(task.source + y * task.source_stride, task.source_stride, scratch.paired_columns,
                            task.out_width, out + (y - top) * stride, stride);
    }
  }
#else
  (void)use_simd;
#endif
  for (; y < bottom; ++y) {
    narrow_row(task.source + y * task.source_stride, task.channels, columns, task.out_width,
               out + (y - top) * stride);
  }
}

}  // namespace

void resample(const ResampleTask& task, ResampleScratch& scratch, uint8_t* out, bool use_simd) {
  use_simd = use_simd && has_avx2_kernels();
  compute_axis(task.source_width, task.resized_width, task.window_left, task.out_width, task.mirror,
               scratch.columns);
  compute_axis(task.source_height, task.resized_height, task.window_top, task.out_height, false,
               scratch.rows);
  // Only the source rows that the window's outputs read.
  const int top = scratch.rows.first.front();
  const int bottom = scratch.rows.first.back() + scratch.rows.count.back();
  const int64_t row_bytes = static_cast<int64_t>(task.out_width) * task.channels;
  const int64_t stride = row_bytes + 4;  // room for a store beyond the last pixel
  const auto needed = static_cast<size_t>(stride * (bottom - top));
  if (scratch.narrowed.size() < needed) scratch.narrowed.resize(needed);
  narrow_rows(task, scratch, top, bottom, stride, use_simd, scratch.narrowed.data());
#if defined(__x86_64__)
  const auto merge = use_simd ? merge_rows_avx2 : merge_rows;
#else
  const auto merge = merge_rows;
#endif
  for (int y = 0; y < task.out_height; ++y) {
    const auto i = static_cast<size_t>(y);
    merge(scratch.narrowed.data() + (scratch.rows.first[i] - top) * stride, stride,
          scratch.rows.weights.data() + static_cast<int64_t>(y) * scratch.rows.stride, scratch.rows.count[i],
          row_bytes, out + y * row_bytes);
  }
  give_back(scratch.narrowed, needed);
}

}  // namespace stoker::data
