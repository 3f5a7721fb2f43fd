// SPDX-License-Identifier: Apache-2.0
#include "data/transform/augment_random.h"

#include <cmath>

#include "data/transform/augment_colour.h"
#include "data/transform/augment_filter.h"

namespace stoker::data {
namespace {

/// torch.linspace(low, high, 31)[level] in single precision: from both ends towards the middle.
double spaced(float low, float high, int level) {
  const float step = (high - low) / static_cast<float>(kMagnitudes - 1);
  if (level < kMagnitudes / 2) return low + step * static_cast<float>(level);
  return high - step * static_cast<float>(kMagnitudes - 1 - level);
}

}  // namespace

double magnitude_of(ImageOperation operation, MagnitudeSpace space, int level, int side) {
  const bool trivial = space == MagnitudeSpace::trivial_augment;
  switch (operation) {
    case ImageOperation::shear_x:
    case ImageOperation::shear_y: return spaced(0, trivial ? 0.99F : 0.3F, level);
    case ImageOperation::translate_x:
    case ImageOperation::translate_y: return spaced(0, trivial ? 32 : static_cast<float>(150.0 / 331.0 * side), level);
    case ImageOperation::rotate: return spaced(0, trivial ? 135 : 30, level);
    case ImageOperation::brightness:
    case ImageOperation::color:
    case ImageOperation::contrast:
    case ImageOperation::sharpness: return spaced(0, trivial ? 0.99F : 0.9F, level);
    case ImageOperation::posterize: return 8 - std::nearbyint(level / ((kMagnitudes - 1) / (trivial ? 6.0 : 4.0)));
    case ImageOperation::solarize: return spaced(255, 0, level);
    case ImageOperation::identity:
    case ImageOperation::auto_contrast:
    case ImageOperation::equalize: break;
  }
  return 0;
}

bool has_sign(ImageOperation operation) {
  return operation >= ImageOperation::shear_x && operation <= ImageOperation::sharpness;
}

void apply_operation(ImageOperation operation, double magnitude, Interpolation interpolation, const SquareImage& image,
                     std::vector<uint8_t>& copy) {
  const auto move = [&](const AffineMap& map) {
    copy.assign(image.pixels, image.pixels + image.bytes());
    move_pixels(copy.data(), map, interpolation, image);
  };
  switch (operation) {
    case ImageOperation::identity: return;
    case ImageOperation::shear_x: return move(shear_map(magnitude, 0));
    case ImageOperation::shear_y: return move(shear_map(0, magnitude));
    case ImageOperation::translate_x: return move(shift_map(static_cast<int>(magnitude), 0));
    case ImageOperation::translate_y: return move(shift_map(0, static_cast<int>(magnitude)));
    case ImageOperation::rotate: return move(rotation_map(magnitude, image.side));
    case ImageOperation::brightness: return adjust_brightness(image, 1 + magnitude);
    case ImageOperation::color: return adjust_saturation(image, 1 + magnitude);
    case ImageOperation::contrast: return adjust_contrast(image, 1 + magnitude);
    case ImageOperation::sharpness: return adjust_sharpness(image, 1 + magnitude, copy);
    case ImageOperation::posterize: return posterize(image, static_cast<int>(magnitude));
    case ImageOperation::solarize: return solarize(image, magnitude);
    case ImageOperation::auto_contrast: return stretch_contrast(image);
    case ImageOperation::equalize: return equalize_histogram(image);
  }
}

}  // namespace stoker::data
