// SPDX-License-Identifier: Apache-2.0
// A data set whose pixels stay on the device: batches are cut out of them there, by recipes. For images of one size
// that training neither resizes nor changes besides cropping and mirroring.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>

#include "data/loader/loader.h"

namespace stoker::data {

class ResidentPixels {
 public:
  struct Settings {
    torch::Device device = torch::kCPU;
    DecodeLimits limits;
    int64_t threads = 1;       ///< that read and decode
    int64_t budget_bytes = 0;  ///< memory limit on the device
  };
  struct Loaded;

  /// Reads all samples of `source`, as `plan` wants their channels, and copies them to the device. What is in the way
  /// (sizes that differ, an image that is bad, a transform that resizes, too many bytes) is returned as text instead.
  /// Throws what Source::read throws, core::StopRequested, and Error{out_of_memory}.
  static Loaded load(const Source& source, const TransformPlan& plan, const Settings& settings);

  /// How the images lie: for LoaderSettings::stored.
  const StoredImages& layout() const { return layout_; }
  int64_t bytes() const { return pixels_.numel(); }

  /// `recipes`: as a loader makes them, uint8 [n, 1, 16, 1] on the device. Returns uint8 [n, H, W, C] of the plan's
  /// shape, contiguous: the bytes that the loader would have made. No host sync.
  torch::Tensor images_of(const torch::Tensor& recipes) const;

 private:
  ResidentPixels(const StoredImages& layout, const TransformPlan& plan, torch::Tensor pixels);

  StoredImages layout_;
  torch::Tensor pixels_;                     ///< uint8 [N, H + 2 border, W + 2 border, C] on the device
  torch::Tensor rows_, columns_, mirrored_;  ///< int64 [1, H], [1, W], [1, W] of the plan's shape
};

struct ResidentPixels::Loaded {
  std::shared_ptr<const ResidentPixels> pixels;  ///< null where there is an obstacle
  std::string obstacle;
};

}  // namespace stoker::data
