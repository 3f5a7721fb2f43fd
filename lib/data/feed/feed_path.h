// SPDX-License-Identifier: Apache-2.0
// How batches reach a device: one way per kind of device, behind DeviceFeed.
#pragma once

#include <memory>

#include "data/feed/device_feed.h"

namespace stoker::data {

class FeedPath {
 public:
  virtual ~FeedPath() = default;
  virtual void drop() = 0;  ///< forgets batches under way
  virtual bool next(Batch& batch, bool may_stop) = 0;
};

/// Clips [n, T, H, W, C] as images [n * T, H, W, C], clips of two views [n, 2, T, H, W, C] as images [n * 2 * T, ...];
/// images as they are. A view.
inline torch::Tensor single_images(const torch::Tensor& pixels) {
  return pixels.dim() > 4 ? pixels.flatten(0, pixels.dim() - 4) : pixels;
}

/// Normalised images [n * T, C, H, W] as clips [n, T, C, H, W] where `pixels` are clips: a view. Of two views: a copy
/// [n, T, 2 * C, H, W], each frame with its partner's channels behind its own.
inline torch::Tensor as_clips(const torch::Tensor& images, const torch::Tensor& pixels) {
  if (pixels.dim() < 5) return images;
  const torch::Tensor clips = images.unflatten(0, pixels.sizes().slice(0, pixels.dim() - 3));
  return pixels.dim() == 5 ? clips : clips.transpose(1, 2).flatten(2, 3);
}

/// For devices with streams. Copies the next batch, if it is ready, while the current one is computed with.
std::unique_ptr<FeedPath> make_copy_ahead_feed(Loader& loader, const FeedSettings& settings);

}  // namespace stoker::data
