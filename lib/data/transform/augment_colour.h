// SPDX-License-Identifier: Apache-2.0
// Augmentations that change the colour of each pixel. The results are those of torchvision.transforms.functional on PIL
// images (Pillow's arithmetic), byte for byte. Gray images: what needs colours leaves them as they are. By how much is
// drawn in augment.h.
#pragma once

#include "data/transform/pixel_image.h"

namespace stoker::data {

// Factors are at least 0; 1 changes nothing.
void adjust_brightness(const PixelImage& image, double factor);  ///< towards black, or away from it
void adjust_contrast(const PixelImage& image, double factor);    ///< towards the mean luma, or away from it
void adjust_saturation(const PixelImage& image,
                       double factor);  ///< towards each pixel's luma, or away from it

void to_grayscale(const PixelImage& image);  ///< luma in all channels

void posterize(const PixelImage& image, int bits);         ///< keeps the high `bits` (1 to 8) of each byte
void solarize(const PixelImage& image, double threshold);  ///< inverts bytes that are not below it
void stretch_contrast(const PixelImage& image);            ///< per channel to 0..255: Pillow's autocontrast
void equalize_histogram(const PixelImage& image);          ///< per channel: Pillow's equalize

/// original -> degenerate + factor x (original - degenerate), byte by byte, cut off to 0..255 and rounded
/// down.
void blend_bytes(const uint8_t* degenerate, uint8_t* original, int64_t bytes, double factor);

// Turning the hue. By how much is drawn in augment.h.

/// Moves the hue by `turn` of the full circle, -0.5 to 0.5, through 8-bit HSV as Pillow converts it: the
/// bytes of torchvision.transforms.functional.adjust_hue on PIL images. A gray image stays as it is.
void adjust_hue(const PixelImage& image, double turn);

}  // namespace stoker::data
