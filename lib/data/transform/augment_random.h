// SPDX-License-Identifier: Apache-2.0
// The operations of RandAugment (Cubuk et al. 2020) and TrivialAugment (Mueller, Hutter 2021) with
// torchvision's list and magnitudes. Which are drawn: augment.h.
#pragma once

#include <vector>

#include "data/transform/augment_geometry.h"

namespace stoker::data {

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
enum class MagnitudeSpace { rand_augment, trivial_augment };

constexpr int kMagnitudes = 31;  ///< levels 0 to 30

/// The number that torchvision gives `operation` at `level` on images of `side` pixels; 0 where it takes
/// none. Shears as tangents, translations in pixels, rotations in degrees, colours as factor - 1, posterize
/// in bits, solarize as a threshold.
double magnitude_of(ImageOperation operation, MagnitudeSpace space, int level, int side);
/// Whether the sign of the magnitude is drawn too.
bool has_sign(ImageOperation operation);

/// `copy` is scratch.
void apply_operation(ImageOperation operation, double magnitude, Interpolation interpolation, const SquareImage& image,
                     std::vector<uint8_t>& copy);

}  // namespace stoker::data
