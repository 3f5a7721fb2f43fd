// SPDX-License-Identifier: Apache-2.0
// Batch norm in training, with the ReLU and the addition that follow it, as loops over memory: [rows, channels],
// channels next to each other, a multiple of kNormLanes. Values are float, or bfloat16 as its 16 bits. Sums are taken
// in pieces of a fixed size and put together in order: the bits depend on neither the number of threads nor the CPU.
// That is what keeps it: LibTorch's batch norm has other bits with one thread than with two. Gain on one update: 1.06
// to 1.09 times for small_cnn, 1.07 to 1.15 times for peer_cnn (LibTorch 1.13, Xeon), none for ResNets or on Zen 4.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/parallel.h"

namespace stoker::kernels {

inline constexpr int64_t kNormLanes = 16;

struct NormShape {
  int64_t rows = 0;  ///< images x height x width, at least 1
  int64_t channels = 0;
};

/// Of each channel.
struct ChannelMoments {
  std::vector<double> mean;
  std::vector<double> variance;  ///< of these rows: divided by their number
};

/// By Chan, Golub, LeVeque 1979: the moments of pieces, then of all.
template <typename T>
ChannelMoments channel_moments(const T* x, NormShape shape, ParallelFor parallel_for);

/// y = max(0, x * scale[c] + shift[c] + added); added may be nullptr. NaN stays NaN.
template <typename T>
void scale_add_relu(const T* x, const T* added, NormShape shape, const float* scale, const float* shift, T* y,
                    ParallelFor parallel_for);

/// Sums over the rows of dy where y > 0, and of that times (x - mean[c]).
struct ChannelSums {
  std::vector<double> gradient, grad_times_centered;
};
template <typename T>
ChannelSums relu_gradient_sums(const T* dy, const T* y, const T* x, NormShape shape, const float* mean,
                               ParallelFor parallel_for);

/// dx = a[c] * g + b[c] * (x - mean[c]) + d[c], where g = dy where y > 0, else 0; and `added_gradient` = g unless it is
/// nullptr.
template <typename T>
void norm_relu_gradients(const T* dy, const T* y, const T* x, NormShape shape, const float* mean, const float* a,
                         const float* b, const float* d, T* dx, T* added_gradient, ParallelFor parallel_for);

}  // namespace stoker::kernels
