// SPDX-License-Identifier: Apache-2.0
// 3 x 3 convolutions of float by Winograd's algorithm F(4 x 4, 3 x 3) (Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2015), which multiplies a quarter as often. The loops are those of oneDNN 2.x for
// AVX-512, which LibTorch does not ask for; oneDNN 3 has none. Results differ from the direct way by rounding: some
// 1e-6 of their root mean square. Knows nothing of tensors.
// Gain of one update of resnet18 at 160 px: 1.38 times (LibTorch 1.13, two threads, Zen 4).
#pragma once

#include <cstdint>
#include <memory>

namespace stoker::kernels {

/// Stride 1, padding 1, one group, no dilation: as many pixels out as in.
struct WinogradShape {
  int64_t images = 0, in_channels = 0, out_channels = 0, height = 0, width = 0;
  bool channels_last = false;          ///< images and their gradients: [N, H, W, C] in memory, else [N, C, H, W]
  bool weights_channels_last = false;  ///< weights and their gradient: [O, 3, 3, I], else [O, I, 3, 3]
};

/// The passes of one shape for the number of threads that the thread which made it has. Any thread, several at once,
/// each with a workspace of its own.
class WinogradConv {
 public:
  /// Null where it is not possible, or not faster: fewer than 32 channels, or tiles of 4 x 4 pixels that lie for more
  /// than a third outside of the image. Kept for the next call. Throws std::bad_alloc; the next call tries again.
  static std::shared_ptr<const WinogradConv> of(const WinogradShape& shape);

  virtual ~WinogradConv() = default;
  /// Bytes that every pass needs besides its operands.
  virtual int64_t workspace_bytes() const = 0;
  virtual void forward(const float* x, const float* weights, float* y, void* workspace) const = 0;
  virtual void input_gradient(const float* dy, const float* weights, float* dx, void* workspace) const = 0;
  virtual void weight_gradient(const float* x, const float* dy, float* gradient, void* workspace) const = 0;
};

}  // namespace stoker::kernels
