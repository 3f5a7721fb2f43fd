// SPDX-License-Identifier: Apache-2.0
// From decoded pixels to one row of a batch: crop, resize, flip, written straight to where the batch lives.
// Every draw is a pure function of (seed, epoch, sample).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/rng.h"
#include "data/clip_frames.h"
#include "data/image/decode.h"
#include "data/resample/resample.h"
#include "data/source.h"
#include "data/transform/augment.h"

namespace stoker::data {

/// The effect of a transform on the targets of an image.
struct TargetRule {
  std::vector<float> flip_signs;  ///< [targets] factors of a mirrored image; empty: mirroring changes nothing
  /// `targets` [flip_signs.size()] become those of the mirrored image.
  void mirror(float* targets) const;
};

/// One of several crops of an image in evaluation.
struct CropView {
  double scale = 1;          ///< relative size of the resized image that it is cut from
  int across = 0, down = 0;  ///< -1: at the left or upper end, 0: in the middle, 1: at the other end
  bool mirrored = false;     ///< the image, before it is cropped
};

/// The transform of a sample; fixed for a run.
struct TransformPlan {
  bool training = false;
  SampleShape shape;            ///< shape of the output
  std::vector<CropView> views;  ///< crops that are all output, one below the other; empty: one alone
  config::TrainCrop train_crop = config::TrainCrop::none;
  double scale_min = 0.08, scale_max = 1, ratio_min = 0.75, ratio_max = 4.0 / 3;
  int64_t crop_padding = 0;  ///< pixels
  double hflip = 0;          ///< probability
  AugmentPlan augment;       ///< what follows; training only
  MaskPlan masks;            ///< what comes last; training only
  config::EvalCrop eval_crop = config::EvalCrop::center;
  double crop_pct = 1;
  ResizeFilter filter = ResizeFilter::bilinear;
  ClipPlan clip;  ///< which frames, where a sample is taken from several
  TargetRule target_rule;
  int channels() const { return static_cast<int>(shape.channels); }
  int out_width() const { return static_cast<int>(shape.width); }
  /// The height of one view.
  int out_height() const { return static_cast<int>(shape.height) / std::max(1, static_cast<int>(views.size())); }
};

/// The geometry drawn for one sample: the region of the source (may reach outside it when padded: such pixels
/// are 0) that is resized, of which the output is a window, mirrored or not.
struct SampleGeometry {
  int left = 0, top = 0, width = 0, height = 0;  ///< pixels of the source
  int resize_width = 0, resize_height = 0;       ///< the region's size after resizing
  int crop_left = 0, crop_top = 0;  ///< where the output lies in the resized region; below 0: black bars around it
  bool flip = false;
  bool keeps_size() const { return resize_width == width && resize_height == height; }
};

/// `fixed`: what the source fixes of its samples' shape; where that is a size, samples are not resized. Otherwise
/// they become images of bytes of img_size with in_chans channels.
TransformPlan make_transform_plan(const config::ResolvedDataOptions& data,
                                  const config::ResolvedAugmentOptions& augment, bool training,
                                  const SampleShape& fixed = {});
/// Makes the views of --tta come out of a plan of evaluation: those of torchvision's TenCrop, or three scales.
void add_views(config::TestTimeAugmentation tta, TransformPlan& plan);
/// The whole plan in one line, such as "random-resized crop, mirrored 0.5, noise 0.02"; "none" when nothing
/// varies.
std::string transform_text(const TransformPlan& plan);
/// The order of draws is part of the format of a run: box, then flip.
SampleGeometry draw_geometry(const TransformPlan& plan, int source_width, int source_height, core::Rng& rng,
                             const CropView& view = {});

/// The draw for an image of from_width x from_height, for the same picture in another size: the same part of it.
SampleGeometry same_part(const SampleGeometry& drawn, int from_width, int from_height, int width, int height);

/// Scratch of one worker.
struct TransformScratch {
  ResampleScratch resample;
  std::vector<uint8_t> padded;  ///< the region, where it reaches outside the source
};

/// Whether the image fills the output in part alone.
bool has_bars(const TransformPlan& plan, const SampleGeometry& geometry);
/// The resize of a geometry, without its source, to the part of the output that the image fills.
ResampleTask resample_task(const TransformPlan& plan, const SampleGeometry& geometry);
/// Where that part begins in `row`, which holds an output; blackens what is around it.
uint8_t* filled_part(const TransformPlan& plan, const SampleGeometry& geometry, uint8_t* row);

/// Writes an image of the plan's height, width and channels, HWC bytes, to `row`. Resizing is antialiased as
/// Pillow and torchvision (antialias=True) do it, in integer arithmetic: the same bits on every machine.
void transform_into(const uint8_t* pixels, int source_height, int source_width, const TransformPlan& plan,
                    const SampleGeometry& geometry, TransformScratch& scratch, uint8_t* row);

}  // namespace stoker::data
