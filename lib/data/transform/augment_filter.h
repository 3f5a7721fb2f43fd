// SPDX-License-Identifier: Apache-2.0
// Augmentations that use neighbouring pixels, add noise or erase. How strongly is drawn in augment.h; only the noise
// itself is drawn here.
#pragma once

#include <array>
#include <vector>

#include "data/transform/pixel_image.h"

namespace stoker::data {

/// Blends with the image smoothed by Pillow's SMOOTH filter:
/// torchvision.transforms.functional.adjust_sharpness on PIL images, byte for byte. `factor` 0 is smooth, 1
/// changes nothing. `smooth` is scratch.
void adjust_sharpness(const PixelImage& image, double factor, std::vector<uint8_t>& smooth);

/// Scratch of blurring; capacity only grows.
struct BlurScratch {
  std::vector<uint32_t> weights;      ///< weights of the centre and of each distance from it
  std::vector<uint8_t> padded;        ///< one row with its mirrored borders
  std::vector<uint16_t> narrowed;     ///< the image after the pass along rows, 8 more bits
  std::vector<const uint16_t*> rows;  ///< rows of `narrowed`, around one row
};

/// Gaussian blur with `kernel` (odd, below twice the short side) taps and mirrored borders, as torchvision's
/// gaussian_blur; in fixed point, so that a byte may differ from its floats by 1. `sigma` in pixels, above 0.
void blur(const PixelImage& image, int kernel, double sigma, BlurScratch& scratch);

/// Which noise each 16-bit number stands for, so that equal chances give a normal distribution.
using NoiseTable = std::vector<int16_t>;
/// `sigma` as a share of the full range, 0 to 1.
NoiseTable make_noise_table(double sigma);
/// Adds noise to each byte, cut off to 0..255; `key` chooses it.
void add_noise(const PixelImage& image, const NoiseTable& table, uint64_t key);

/// A box of pixels.
struct PixelBox {
  int left = 0, top = 0, width = 0, height = 0;
};
void erase(const PixelImage& image, const PixelBox& box, const std::array<uint8_t, 3>& value);

}  // namespace stoker::data
