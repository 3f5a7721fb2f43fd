// SPDX-License-Identifier: Apache-2.0
// Windows of maps, the last two dimensions of a tensor: which places belong to which element of a pooling.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "proof/rules/comparison.h"

namespace stoker::proof {

using Pair = std::array<int64_t, 2>;  // row, column

/// Maps [..., height, width].
struct Maps {
  explicit Maps(const at::Tensor& tensor)
      : numbers(tensor),
        rows(tensor.size(-2)),
        columns(tensor.size(-1)),
        row_stride(numbers.stride(tensor.dim() - 2)),
        column_stride(numbers.stride(tensor.dim() - 1)) {}

  /// The map of an element.
  const float* map(const int64_t* index) const {
    int64_t offset = 0;
    for (int64_t i = 0; i + 2 < numbers.dim(); ++i) offset += index[i] * numbers.stride(i);
    return numbers.data() + offset;
  }
  double at(const float* map, int64_t row, int64_t column) const {
    return map[row * row_stride + column * column_stride];
  }
  Pair place_of(const int64_t* index) const { return {index[numbers.dim() - 2], index[numbers.dim() - 1]}; }

  Numbers numbers;
  int64_t rows, columns, row_stride, column_stride;
};

/// Places along one side: begin, begin + step, ..., below end.
struct Steps {
  int64_t begin = 0, end = 0, step = 1;
};

template <typename Work>
void for_each_in(const std::array<Steps, 2>& window, const Work& work) {
  for (int64_t row = window[0].begin; row < window[0].end; row += window[0].step)
    for (int64_t column = window[1].begin; column < window[1].end; column += window[1].step) work(row, column);
}

/// Windows of `kernel` places, `stride` apart; those places of them that lie in a map.
struct Windows {
  Pair kernel{}, stride{}, padding{}, dilation{1, 1}, limits{};

  /// Dilated ones may have no place but in the padding.
  bool may_be_empty() const { return (dilation[0] > 1 || dilation[1] > 1) && (padding[0] > 0 || padding[1] > 0); }
  std::array<Steps, 2> of(const Pair& place) const {
    std::array<Steps, 2> window;
    for (size_t i = 0; i < 2; ++i) {
      int64_t begin = place[i] * stride[i] - padding[i];
      const int64_t end = std::min(begin + (kernel[i] - 1) * dilation[i] + 1, limits[i]);
      while (begin < 0) begin += dilation[i];
      window[i] = {begin, end, dilation[i]};
    }
    return window;
  }
  /// Windows, of `counts`, between the first and the last one that `place` may lie in.
  std::array<Steps, 2> around(const Pair& place, const Pair& counts) const {
    std::array<Steps, 2> windows;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t last = place[i] + padding[i], first = last - (kernel[i] - 1) * dilation[i];
      windows[i] = {first <= 0 ? 0 : (first + stride[i] - 1) / stride[i], std::min(last / stride[i] + 1, counts[i]), 1};
    }
    return windows;
  }
};

/// The windows of a mean, and by what their sums are divided.
struct MeanWindows {
  Windows windows;
  bool counts_padding = true;
  int64_t divisor = 0;  ///< 0: the number of places

  double divisor_of(const Pair& place) const {
    if (divisor != 0) return static_cast<double>(divisor);
    int64_t count = 1;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t begin = place[i] * windows.stride[i] - windows.padding[i], end = begin + windows.kernel[i];
      count *= counts_padding ? std::min(end, windows.limits[i] + windows.padding[i]) - begin
                              : std::min(end, windows.limits[i]) - std::max<int64_t>(begin, 0);
    }
    return static_cast<double>(count);
  }
};

/// The place of the first of the largest numbers in a window, row by row.
inline int64_t maximum_in(const std::array<Steps, 2>& window, const Maps& maps, const float* map) {
  int64_t best = -1;
  double largest = 0;
  for_each_in(window, [&](int64_t row, int64_t column) {
    const double value = maps.at(map, row, column);
    if (best >= 0 && value <= largest) return;
    best = row * maps.columns + column;
    largest = value;
  });
  return best;
}

}  // namespace stoker::proof
