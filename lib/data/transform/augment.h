// SPDX-License-Identifier: Apache-2.0
// The chain of random changes after crop, resize and flip: one declared order, each operation with a random
// stream of its own, so that switching one on moves no draw of another. What is drawn is a pure function of
// (seed, epoch, sample).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/rng.h"
#include "data/source.h"
#include "data/transform/augment_filter.h"
#include "data/transform/augment_geometry.h"

namespace stoker::data {

// The operations of RandAugment (Cubuk et al. 2020), TrivialAugment (Mueller, Hutter 2021) and AugMix (Hendrycks et al.
// 2020) with torchvision's list and magnitudes. Which are drawn: augment.h.

/// In torchvision's order, which draws count in.
enum class ImageOperation {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize,
};
constexpr int kImageOperations = 14;

/// How strong the strongest magnitudes are.
enum class MagnitudeSpace { rand_augment, trivial_augment, aug_mix };

constexpr int kMagnitudes = 31;        ///< levels 0 to 30
constexpr int kAugMixMagnitudes = 10;  ///< levels 0 to 9; torchvision's AugMix draws the lowest three

/// The number that torchvision gives `operation` at `level` on images of `width` x `height` pixels; 0
/// where it takes none. Shears as tangents, translations in pixels, rotations in degrees, colours as factor - 1,
/// posterize in bits, solarize as a threshold.
double magnitude_of(ImageOperation operation, MagnitudeSpace space, int level, int width, int height);
/// Whether the sign of the magnitude is drawn too.
bool has_sign(ImageOperation operation);

/// `copy` is scratch.
void apply_operation(ImageOperation operation, double magnitude, Interpolation interpolation, const PixelImage& image,
                     std::vector<uint8_t>& copy);

/// The augmentations of an image, in order. Everything is off by default; fixed for a
/// run.
struct AugmentPlan {
  double vflip = 0;                 ///< probability
  double rotate90 = 0;              ///< probability of a turn by 1, 2 or 3 quarters
  double rotation_degrees = 0;      ///< a turn by up to this either way; 0: off
  int rand_augment_operations = 0;  ///< per image; 0: off
  int rand_augment_level = 0;       ///< 0 to 30
  config::AugmentPolicy policy = config::AugmentPolicy::none;
  bool is_affine = false;
  double shift = 0, scale_min = 1, scale_max = 1;       ///< shift: share of width and height
  double shear = 0;                                     ///< degrees either way
  double perspective = 0;                               ///< probability
  double distortion = 0;                                ///< share of half the side that a corner moves by at most
  double brightness = 0, contrast = 0, saturation = 0;  ///< factors from [max(0, 1 - x), 1 + x]; 0: off
  double hue = 0;                                       ///< a turn of the colours by up to this share of the circle
  double jitter = 1;                                    ///< probability of these four
  double grayscale = 0;                                 ///< probability
  double blur = 0;                                      ///< probability
  int blur_kernel = 0;                                  ///< pixels, odd
  double blur_sigma_min = 0, blur_sigma_max = 0;        ///< pixels
  double noise_sigma = 0;                               ///< share of the full range; 0: off
  double noise_probability = 1;
  std::shared_ptr<const NoiseTable> noise;                ///< noise of standard deviation noise_sigma
  double erasing = 0;                                     ///< probability
  std::array<uint8_t, 3> erased_value{};                  ///< per channel: the mean pixel, 0 after normalisation
  Interpolation interpolation = Interpolation::bilinear;  ///< method of turns by angles, shears and translations

  bool is_active() const;
};

/// `data` with mean, img_size and in_chans resolved.
AugmentPlan make_augment_plan(const config::ResolvedDataOptions& data, const config::ResolvedAugmentOptions& options);

/// The chain in one line, such as "colour jitter 0.4,0.4,0.4,0.1, random erasing 0.25"; empty when it does
/// nothing.
std::string chain_text(const AugmentPlan& plan);

/// Which numbers are drawn.
struct SampleKey {
  uint64_t seed = 0, epoch = 0, sample = 0;
};

/// Scratch of one worker; capacity only grows.
struct AugmentScratch {
  std::vector<uint8_t> copy, original;
  std::vector<int32_t> mixed;  ///< sum of AugMix, in units of 2^-16
  BlurScratch blur;
};

/// Changes the image in place. The order of operations, and of draws within each, is part of the format of a
/// run.
void augment(const AugmentPlan& plan, const SampleKey& key, const PixelImage& image, AugmentScratch& scratch);

// Bands of frequency and segments of time that are blanked in a spectrogram: Park et al. 2019, "SpecAugment:
// A Simple Data Augmentation Method for Automatic Speech Recognition" (arXiv 1904.08779), without time
// warping; drawn as torchaudio's FrequencyMasking and TimeMasking draw them. Frequency is the height of a
// sample, time its width.

/// Fixed for a run.
struct MaskPlan {
  int64_t freq_masks = 0, freq_param = 0;  ///< bands, each narrower than freq_param bins
  int64_t time_masks = 0, time_param = 0;  ///< segments, each shorter than time_param steps
  std::vector<uint8_t> fill;               ///< one pixel of the sample's element: the mean, 0 after normalisation
  bool is_active() const { return freq_masks > 0 || time_masks > 0; }
};

/// `mean` per channel: of bytes as numbers in [0, 1], of floats as they are.
MaskPlan make_mask_plan(const config::ResolvedAugmentOptions& options, const std::vector<double>& mean,
                        const SampleShape& shape);
/// "2 frequency masks below 8, 2 time masks below 8"; empty when there are none.
std::string masks_text(const MaskPlan& plan);

/// The masks along one side.
struct MaskBand {
  int64_t begin = 0, size = 0;
};
/// Width uniform in [0, min(param, side)), then begin uniform in [0, side - width), both rounded down.
MaskBand draw_band(int64_t param, int64_t side, core::Rng& rng);

/// Blanks what is drawn for `key` in the row of a batch, in place; all frames of a clip alike.
void mask_spectrogram(const MaskPlan& plan, const SampleKey& key, const SampleShape& shape, uint8_t* row);

}  // namespace stoker::data
