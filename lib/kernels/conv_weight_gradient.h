// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's weights, as loops over memory, for CPUs that multiply pairs of bfloat16
// (AVX512-BF16). oneDNN turns its inputs round and adds up over threads here, at less than half the speed of its
// forward pass; these loops pair up images, so that nothing is turned and no pair crosses an edge. Independent of
// tensors.
// Gain on one update of tiny_cnn: 1.52 times with LibTorch 1.13, 1.31 times with 2.6 (two threads, Zen 4); 1.16 to
// 1.19 times per second of one core (Xeon without AMX). None for ResNets.
#pragma once

#include <cstdint>

#include "kernels/cpu.h"

namespace stoker::kernels {

/// Channels come in multiples of this.
inline constexpr int64_t kConvLanes = 16;

/// One group, no dilation. Images [images, in_height, in_width, in_channels], channels next to each other.
struct ConvShape2d {
  int64_t images = 0, in_channels = 0, in_height = 0, in_width = 0;
  int64_t out_channels = 0, out_height = 0, out_width = 0;
  int64_t kernel = 0, stride = 1, padding = 0;  ///< pixels, the same along both axes
};

/// Where the value of (out channel, in channel, row, column) is in the gradient.
struct WeightStrides {
  int64_t out_channel = 0, in_channel = 0, row = 0, column = 0;
};

/// gradient[o, i, r, s] = sum of dy[n, y, x, o] * x[n, y * stride + r - padding, x * stride + s - padding, i], bfloat16
/// as its 16 bits, summed in float in an order that does not depend on the number of threads. A piece of the work is
/// kConvLanes in channels. Only where has_conv_weight_gradient().
void conv_weight_gradient(const ConvShape2d& shape, const uint16_t* x, const uint16_t* dy, const WeightStrides& strides,
                          float* gradient, ParallelFor parallel_for);

}  // namespace stoker::kernels
