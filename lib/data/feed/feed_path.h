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

/// Clips [n, T, H, W, C] as images [n * T, H, W, C]; images as they are. A view.
inline torch::Tensor single_images(const torch::Tensor& pixels) {
  return pixels.dim() == 5 ? pixels.flatten(0, 1) : pixels;
}

/// Normalised images [n * T, C, H, W] as clips [n, T, C, H, W] where `pixels` are clips. A view.
inline torch::Tensor as_clips(const torch::Tensor& images, const torch::Tensor& pixels) {
  return pixels.dim() == 5 ? images.unflatten(0, {pixels.size(0), pixels.size(1)}) : images;
}

/// For devices with streams. Copies the next batch, if it is ready, while the current one is computed with.
std::unique_ptr<FeedPath> make_copy_ahead_feed(Loader& loader, const FeedSettings& settings);

}  // namespace stoker::data
