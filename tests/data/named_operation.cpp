// SPDX-License-Identifier: Apache-2.0
#include "named_operation.h"

#include "data/transform/augment.h"
#include "data/transform/augment_colour.h"
#include "data/transform/augment_filter.h"
#include "data/transform/augment_geometry.h"

namespace stoker::data {

bool apply_named(const std::string& operation, const std::vector<double>& n, const PixelImage& image) {
  std::vector<uint8_t> copy(image.pixels, image.pixels + image.bytes());
  BlurScratch blur_scratch;
  const auto way = [&](size_t i) { return n.at(i) == 0 ? Interpolation::nearest : Interpolation::bilinear; };
  if (operation == "brightness")
    adjust_brightness(image, n.at(0));
  else if (operation == "contrast")
    adjust_contrast(image, n.at(0));
  else if (operation == "saturation")
    adjust_saturation(image, n.at(0));
  else if (operation == "hue")
    adjust_hue(image, n.at(0));
  else if (operation == "sharpness")
    adjust_sharpness(image, n.at(0), copy);
  else if (operation == "grayscale")
    to_grayscale(image);
  else if (operation == "posterize")
    posterize(image, static_cast<int>(n.at(0)));
  else if (operation == "solarize")
    solarize(image, n.at(0));
  else if (operation == "autocontrast")
    stretch_contrast(image);
  else if (operation == "equalize")
    equalize_histogram(image);
  else if (operation == "quarters")
    turn_quarters(copy.data(), static_cast<int>(n.at(0)), image);
  else if (operation == "rotate")
    move_pixels(copy.data(), rotation_map(n.at(0), image.width, image.height), way(1), image);
  else if (operation == "vflip")
    flip_vertically(image);
  else if (operation == "affine") {  // degrees, right, down, scale, shear, interpolation
    const AffineMove move{n.at(0), n.at(3), n.at(4), static_cast<int>(n.at(1)), static_cast<int>(n.at(2))};
    move_pixels(copy.data(), affine_map(move, image.width, image.height), way(5), image);
  } else if (operation == "perspective") {  // the corners' x and y, interpolation
    Corners corners;
    for (size_t i = 0; i < corners.size(); ++i) corners[i] = {n.at(2 * i), n.at(2 * i + 1)};
    move_pixels(copy.data(), perspective_map(corners, image.width, image.height), way(8), image);
  } else if (operation == "blur")
    blur(image, static_cast<int>(n.at(0)), n.at(1), blur_scratch);
  else if (operation == "noise")
    add_noise(image, make_noise_table(n.at(0)), static_cast<uint64_t>(n.at(1)));
  else if (operation == "operation") {  // number, space, level, sign, interpolation
    const auto which = static_cast<ImageOperation>(static_cast<int>(n.at(0)));
    const auto space = static_cast<MagnitudeSpace>(static_cast<int>(n.at(1)));
    const double magnitude = magnitude_of(which, space, static_cast<int>(n.at(2)), image.width, image.height);
    apply_operation(which, has_sign(which) ? n.at(3) * magnitude : magnitude, way(4), image, copy);
  } else
    return false;
  return true;
}

}  // namespace stoker::data
