// SPDX-License-Identifier: Apache-2.0
// From decoded pixels to one row of a batch: crop, resize, flip, written straight to where the batch lives.
// What is drawn at random is a pure function of (seed, epoch, sample).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/rng.h"
#include "data/augment.h"
#include "data/decode.h"
#include "data/resample.h"

namespace stoker::data {

/// What happens to a sample; fixed for a run.
struct TransformPlan {
  bool training = false;
  int64_t img_size = 0;  ///< pixels; output is img_size x img_size
  int channels = 0;
  config::TrainCrop train_crop = config::TrainCrop::none;
  double scale_min = 0.08, scale_max = 1, ratio_min = 0.75, ratio_max = 4.0 / 3;
  int64_t crop_padding = 0;  ///< pixels
  double hflip = 0;          ///< probability
  AugmentPlan augment;       ///< what follows; training only
  config::EvalCrop eval_crop = config::EvalCrop::center;
  double crop_pct = 1;
};

/// The geometry drawn for one sample: the region of the source (may reach outside it when padded: such pixels
/// are 0) that is resized to img_size x img_size, then mirrored or not.
struct SampleGeometry {
  int left = 0, top = 0, width = 0, height = 0;  ///< pixels of the source
  int resize_width = 0, resize_height = 0;       ///< the region's size after resizing
  int crop_left = 0, crop_top = 0;               ///< where the img_size window lies in the resized region
  bool flip = false;
  bool keeps_size() const { return resize_width == width && resize_height == height; }
};

TransformPlan make_transform_plan(const config::DataOptions& data, const config::AugmentOptions& augment,
                                  bool training);
/// The whole plan in one line, such as "random-resized crop, mirrored 0.5, noise 0.02"; "none" when nothing
/// varies.
std::string transform_text(const TransformPlan& plan);
/// The order of draws is part of the format of a run: box, then flip.
SampleGeometry draw_geometry(const TransformPlan& plan, int source_width, int source_height, core::Rng& rng);

/// Scratch of one worker; capacity only grows.
struct TransformScratch {
  ResampleScratch resample;
  std::vector<uint8_t> padded;  ///< the region, where it reaches outside the source
};

/// Writes img_size x img_size x channels bytes, HWC, to `row`. Resizing is antialiased bilinear as Pillow and
/// torchvision (antialias=True) do it, in integer arithmetic: the same bits on every machine.
void transform_into(const uint8_t* pixels, int source_height, int source_width, const TransformPlan& plan,
                    const SampleGeometry& geometry, TransformScratch& scratch, uint8_t* row);

}  // namespace stoker::data
