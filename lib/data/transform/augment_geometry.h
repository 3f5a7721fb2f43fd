// SPDX-License-Identifier: Apache-2.0
// Augmentations that move the pixels of an image. Pixels that come from outside are black (0), as torchvision has
// it. By how much is drawn in augment.h.
#pragma once

#include <array>

#include "data/transform/pixel_image.h"

namespace stoker::data {

enum class Interpolation { nearest, bilinear };

/// The source of the centre of output pixel (x, y), counted from the corner of the image, is
/// (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]) with x and y taken at the pixel's centre.
using AffineMap = std::array<double, 6>;

AffineMap rotation_map(double degrees, int width, int height);  ///< counter-clockwise about the centre
AffineMap shear_map(double x, double y);   ///< about the upper left corner: a row moves by -x times its y
AffineMap shift_map(int right, int down);  ///< pixels

/// A turn counter-clockwise, a shear of rows and a scale about the centre, then a shift: torchvision's F.affine.
struct AffineMove {
  double degrees = 0, scale = 1, shear = 0;  ///< shear in degrees
  int right = 0, down = 0;                   ///< pixels
};
AffineMap affine_map(const AffineMove& move, int width, int height);

/// The source of the centre of output pixel (x, y), both taken at the pixel's centre:
/// ((m[0] x + m[1] y + m[2]) / d, (m[3] x + m[4] y + m[5]) / d) with d = m[6] x + m[7] y + 1.
using PerspectiveMap = std::array<double, 8>;

/// Corners of the image as (x, y): upper left, upper right, lower right, lower left, in pixels.
using Corners = std::array<std::array<double, 2>, 4>;
/// Moves the corners (0, 0) to (width - 1, height - 1) of the source to `corners` of the output, as torchvision's
/// F.perspective. All zeros where three of them lie on a line.
PerspectiveMap perspective_map(const Corners& corners, int width, int height);

/// Fills `image` from `source`, which has its shape and lies elsewhere. Nearest: the bytes of Pillow's
/// transform. Bilinear: weights in steps of 1/2048, so that a byte may differ from Pillow's by 1. The map's
/// numbers below 2^31.
void move_pixels(const uint8_t* source, const AffineMap& map, Interpolation interpolation, const PixelImage& image);

/// The same with a perspective, by Pillow's arithmetic: its bytes, but where a position lies between two pixels.
void move_pixels(const uint8_t* source, const PerspectiveMap& map, Interpolation interpolation,
                 const PixelImage& image);

void flip_vertically(const PixelImage& image);

/// Fills `image` from `source`, turned counter-clockwise by `turns` (1, 2 or 3) quarters; by 1 or 3 only
/// squares.
void turn_quarters(const uint8_t* source, int turns, const PixelImage& image);

}  // namespace stoker::data
