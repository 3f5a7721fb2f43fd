// SPDX-License-Identifier: Apache-2.0
// From host buffers to normalised batches on the device, copied ahead of use. On CUDA the copy runs on its own
// stream, ordered by events; on the CPU it is the normalisation alone. Independent of models.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <vector>

#include "data/feed/resident_pixels.h"
#include "data/loader/loader.h"

namespace stoker::data {

/// The shape that the network sees.
struct Batch {
  torch::Tensor images;          ///< float32 [n, C, H, W] on the device, normalised; channels-last if requested. Clips:
                                 ///< [n, T, C, H, W], each frame of which lies as a single image does; of two
                                 ///< views [n, T, 2 * C, H, W], contiguous
  torch::Tensor labels;          ///< int64 [n] on the device
  torch::Tensor targets;         ///< float32 [n, num_targets of the source] on the device
  std::vector<int64_t> samples;  ///< [n] source indices
  int64_t planned_images = 0;    ///< n + skipped bad images
  int64_t image_count() const { return labels.size(0); }
};

struct FeedSettings {
  torch::Device device = torch::kCPU;
  bool channels_last = false;
  std::vector<double> mean, std;  ///< per channel: of bytes as numbers in [0, 1], of floats as they are
  /// Called with each batch while it is copied, on the CPU; empty: nothing. For tests.
  std::function<void(const HostBatch&)> on_copy;
  /// Pixels on the device that batches are cut out of; the loader then makes recipes. null: it makes pixels.
  std::shared_ptr<const ResidentPixels> resident = {};

  torch::MemoryFormat memory_format() const {
    return channels_last ? torch::MemoryFormat::ChannelsLast : torch::MemoryFormat::Contiguous;
  }
};

class FeedPath;

/// Wraps a loader; one consumer thread.
class DeviceFeed {
 public:
  DeviceFeed(std::shared_ptr<Loader> loader, FeedSettings settings);
  ~DeviceFeed();

  Loader& loader() { return *loader_; }
  void begin_epoch(int64_t epoch, int64_t first_batch = 0);
  /// As Loader::next. A stop met while copying ahead is reported by the next call, not by this one.
  bool next(Batch& batch, bool may_stop = true);

 private:
  std::shared_ptr<Loader> loader_;
  std::unique_ptr<FeedPath> path_;  ///< declared last: it reads buffers of the loader
};

// How batches reach a device: one way per kind of device, behind DeviceFeed.

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
