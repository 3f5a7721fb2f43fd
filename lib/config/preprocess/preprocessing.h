// SPDX-License-Identifier: Apache-2.0
// How samples become what a network sees, and what its outputs mean: all that stands between a file and an answer
// besides the weights, as one value and as one JSON (preprocess.json of a checkpoint). Plain values, without LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/facts.h"
#include "config/options.h"
#include "core/text/json.h"

namespace stoker::config {

struct Preprocessing {
  TaskKind task = TaskKind::multiclass;
  std::vector<std::string> names;  ///< names of classes, labels or targets, in the order of the network's outputs
  int64_t num_classes = 0;         ///< or labels or targets; there may be more than names

  // One sample as the network sees it: [channels, height, width], or [frames, channels, height, width].
  int64_t frames = 0;  ///< frames of a clip; 0: a single image
  int64_t views = 1;   ///< 2: of each frame one in high and one in low quality; the network sees 2 * channels
  int64_t height = 0, width = 0, channels = 0;
  bool taken_as_is = false;       ///< samples of the data set have this shape already: neither resized nor cropped
  std::string element = "uint8";  ///< type of a sample's numbers: uint8, float16 or float32
  FrameSampling frame_sampling = FrameSampling::uniform;
  int64_t frame_stride = 1;

  // Images that do not have that shape are resized (bilinear with antialiasing, as Pillow does it) and cropped.
  EvalCrop crop = EvalCrop::center;  ///< none: the whole image squashed to height x width; letterbox: fitted in
  Interpolation interpolation = Interpolation::bilinear;
  double crop_pct = 1;  ///< share of the resized short side that the centre crop keeps

  std::vector<double> input_range;    ///< black and white level of images with more than 8 bits; empty: the whole range
  std::optional<SoundOptions> sound;  ///< samples are made of sounds
  std::vector<double> mean, std;      ///< per channel; of bytes divided by 255, of floats as they are

  // The meaning of the outputs: softmax or sigmoid of output / temperature, or output * scale + mean.
  double temperature = 1;
  std::vector<double> threshold{0.5};             ///< binary, multilabel: from which a label is predicted; one or each
  std::vector<double> target_mean, target_scale;  ///< one value or one per target; empty for classes
  PoseHead pose_head = PoseHead::direct;
  int64_t pose_bins = 66;
  double pose_range = 99;  ///< degrees

  /// A side of an image after resizing, before the centre crop: floor(side / crop_pct), like timm.
  int64_t enlarged(int64_t side) const;
};

/// The fixed part of the samples' shape; zeros: none.
struct FixedSamples {
  int64_t frames = 0, height = 0, width = 0, channels = 0;
  std::string element = "uint8";
  int64_t views = 1;
  bool are_sounds = false;
};

Preprocessing preprocessing_of(const ResolvedOptions& options, std::vector<std::string> names,
                               const FixedSamples& fixed);

/// Gives the options that it decides its values, as if a run had set them: flags, files and presets keep precedence.
/// Throws Error{data} where one is out of range. `path` is for messages.
void take_over(const Preprocessing& preprocessing, const std::string& path, Configuration& configuration);

/// The facts about data that a network with this record is used on.
DataFacts facts_of(const Preprocessing& preprocessing);

core::Json to_json(const Preprocessing& preprocessing);
/// Throws Error{data} for what is missing, of another type, or not known to this program.
Preprocessing preprocessing_from_json(const core::Json& json, const std::string& path);

}  // namespace stoker::config
