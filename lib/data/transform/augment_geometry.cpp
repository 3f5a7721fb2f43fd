// SPDX-License-Identifier: Apache-2.0
// Compiled without fused multiply-add (see CMakeLists.txt): the same bits on every machine.
#include "data/transform/augment_geometry.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stoker::data {
namespace {

/// Positions in the source in fixed point: what one step to the right and one step down add, and where output
/// pixel (0, 0) comes from.
struct FixedMap {
  FixedMap(const AffineMap& map, int bits)
      : right_x(fixed(map[0], bits)),
        right_y(fixed(map[3], bits)),
        down_x(fixed(map[1], bits)),
        down_y(fixed(map[4], bits)),
        first_x(fixed(map[2] + map[0] * 0.5 + map[1] * 0.5, bits)),
        first_y(fixed(map[5] + map[3] * 0.5 + map[4] * 0.5, bits)) {}

  static int64_t fixed(double value, int bits) {
    return static_cast<int64_t>(std::floor(std::ldexp(value, bits) + 0.5));
  }

  int64_t right_x, right_y, down_x, down_y, first_x, first_y;
};

template <int kChannels>
void move_nearest(const uint8_t* source, const AffineMap& map, const PixelImage& image) {
  constexpr int kBits = 16;  // Pillow's
  const FixedMap fixed(map, kBits);
  const auto width = static_cast<uint64_t>(image.width), height = static_cast<uint64_t>(image.height);
  uint8_t* out = image.pixels;
  for (int64_t row = 0; row < image.height; ++row) {
    int64_t x = fixed.first_x + row * fixed.down_x, y = fixed.first_y + row * fixed.down_y;
    for (int column = 0; column < image.width; ++column, out += kChannels) {
      // Negative positions become huge ones.
      const auto at_x = static_cast<uint64_t>(x >> kBits), at_y = static_cast<uint64_t>(y >> kBits);
      const bool inside = at_x < width && at_y < height;
      const uint8_t* const pixel = source + (inside ? (at_y * width + at_x) * kChannels : 0);
      for (int c = 0; c < kChannels; ++c) out[c] = inside ? pixel[c] : 0;
      x += fixed.right_x;
      y += fixed.right_y;
    }
  }
}

template <int kChannels>
void move_bilinear(const uint8_t* source, const AffineMap& map, const PixelImage& image) {
  constexpr int kBits = 32, kWeightBits = 11;
  constexpr int32_t kOne = 1 << kWeightBits;
  constexpr int64_t kHalfPixel = int64_t{1} << (kBits - 1);
  const FixedMap fixed(map, kBits);
  const int64_t end_x = int64_t{image.width} << kBits, end_y = int64_t{image.height} << kBits;
  const int64_t last_column = image.width - 1, last_row = image.height - 1;
  uint8_t* out = image.pixels;
  for (int64_t row = 0; row < image.height; ++row) {
    int64_t x = fixed.first_x + row * fixed.down_x, y = fixed.first_y + row * fixed.down_y;
    for (int column = 0; column < image.width; ++column, out += kChannels, x += fixed.right_x, y += fixed.right_y) {
      if (x < 0 || x >= end_x || y < 0 || y >= end_y) {
        std::fill_n(out, kChannels, uint8_t{0});
        continue;
      }
      const int64_t centre_x = x - kHalfPixel, centre_y = y - kHalfPixel;
      const int64_t left = centre_x >> kBits, top = centre_y >> kBits;  // from -1 on
      const auto weight_x = static_cast<int32_t>(centre_x >> (kBits - kWeightBits) & (kOne - 1));
      const auto weight_y = static_cast<int32_t>(centre_y >> (kBits - kWeightBits) & (kOne - 1));
      const int64_t column0 = std::max<int64_t>(left, 0) * kChannels;
      const int64_t column1 = std::min(left + 1, last_column) * kChannels;
      const uint8_t* const row0 = source + std::max<int64_t>(top, 0) * image.row_bytes();
      const uint8_t* const row1 = source + std::min(top + 1, last_row) * image.row_bytes();
      for (int c = 0; c < kChannels; ++c) {
        const int32_t upper = row0[column0 + c] * (kOne - weight_x) + row0[column1 + c] * weight_x;
        const int32_t lower = row1[column0 + c] * (kOne - weight_x) + row1[column1 + c] * weight_x;
        out[c] = static_cast<uint8_t>((upper * (kOne - weight_y) + lower * weight_y) >> (2 * kWeightBits));
      }
    }
  }
}

/// One pixel of Pillow's perspective transform from a position that lies in the image.
template <int kChannels>
void interpolate(const uint8_t* source, double x, double y, const PixelImage& image, uint8_t* out) {
  const double left = std::floor(x - 0.5), top = std::floor(y - 0.5);
  const double right_share = x - 0.5 - left, lower_share = y - 0.5 - top;
  const auto clipped = [](double position, int size) {
    return std::clamp<int64_t>(static_cast<int64_t>(position), 0, size - 1);
  };
  const int64_t column0 = clipped(left, image.width) * kChannels, column1 = clipped(left + 1, image.width) * kChannels;
  const uint8_t* const row0 = source + clipped(top, image.height) * image.row_bytes();
  const uint8_t* const row1 = source + clipped(top + 1, image.height) * image.row_bytes();
  for (int c = 0; c < kChannels; ++c) {
    const double upper = row0[column0 + c] + (row0[column1 + c] - row0[column0 + c]) * right_share;
    const double lower = row1[column0 + c] + (row1[column1 + c] - row1[column0 + c]) * right_share;
    out[c] = static_cast<uint8_t>(upper + (lower - upper) * lower_share);
  }
}

template <int kChannels>
void move_perspective(const uint8_t* source, const PerspectiveMap& map, Interpolation interpolation,
                      const PixelImage& image) {
  uint8_t* out = image.pixels;
  for (int row = 0; row < image.height; ++row) {
    for (int column = 0; column < image.width; ++column, out += kChannels) {
      const double x = column + 0.5, y = row + 0.5, depth = map[6] * x + map[7] * y + 1;
      const double from_x = (map[0] * x + map[1] * y + map[2]) / depth;
      const double from_y = (map[3] * x + map[4] * y + map[5]) / depth;
      if (!(from_x >= 0 && from_x < image.width && from_y >= 0 && from_y < image.height)) {
        std::fill_n(out, kChannels, uint8_t{0});
      } else if (interpolation == Interpolation::bilinear) {
        interpolate<kChannels>(source, from_x, from_y, image, out);
      } else {
        const uint8_t* const pixel =
            source + static_cast<int64_t>(from_y) * image.row_bytes() + static_cast<int64_t>(from_x) * kChannels;
        std::copy_n(pixel, kChannels, out);
      }
    }
  }
}

}  // namespace

AffineMap affine_map(const AffineMove& move, int width, int height) {
  constexpr double kRadians = 3.14159265358979323846 / 180;
  const double turn = -move.degrees * kRadians, shear = move.shear * kRadians;
  const double centre_x = width * 0.5, centre_y = height * 0.5;
  // torchvision's _get_inverse_affine_matrix without a shear of columns: the inverse of turn, shear, scale.
  const double a = std::cos(turn), b = -std::cos(turn) * std::tan(shear) - std::sin(turn);
  const double c = std::sin(turn), d = -std::sin(turn) * std::tan(shear) + std::cos(turn);
  AffineMap map = {d / move.scale, -b / move.scale, 0, -c / move.scale, a / move.scale, 0};
  map[2] = map[0] * (-centre_x - move.right) + map[1] * (-centre_y - move.down) + centre_x;
  map[5] = map[3] * (-centre_x - move.right) + map[4] * (-centre_y - move.down) + centre_y;
  return map;
}

PerspectiveMap perspective_map(const Corners& corners, int width, int height) {
  constexpr int kUnknowns = 8;
  const double right = width - 1, bottom = height - 1;
  const Corners source = {{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}};
  // Each corner gives two rows: its source's x and y, linear in the unknowns.
  std::array<std::array<double, kUnknowns + 1>, kUnknowns> rows{};
  for (size_t i = 0; i < source.size(); ++i) {
    const auto [x, y] = corners[i];
    const auto [from_x, from_y] = source[i];
    rows[2 * i] = {x, y, 1, 0, 0, 0, -from_x * x, -from_x * y, from_x};
    rows[2 * i + 1] = {0, 0, 0, x, y, 1, -from_y * x, -from_y * y, from_y};
  }
  for (size_t step = 0; step < kUnknowns; ++step) {  // elimination with the largest pivot
    const auto larger = [step](const auto& one, const auto& other) {
      return std::abs(one[step]) < std::abs(other[step]);
    };
    std::iter_swap(rows.begin() + step, std::max_element(rows.begin() + step, rows.end(), larger));
    if (std::abs(rows[step][step]) < 1e-9) return {};
    for (size_t row = 0; row < kUnknowns; ++row) {
      if (row == step) continue;
      const double factor = rows[row][step] / rows[step][step];
      for (size_t k = step; k <= kUnknowns; ++k) rows[row][k] -= factor * rows[step][k];
    }
  }
  PerspectiveMap map{};
  for (size_t i = 0; i < kUnknowns; ++i) map[i] = rows[i][kUnknowns] / rows[i][i];
  return map;
}

AffineMap rotation_map(double degrees, int width, int height) {
  constexpr double kPi = 3.14159265358979323846;
  const double radians = -degrees * (kPi / 180), centre_x = width / 2.0, centre_y = height / 2.0;
  // Whole quarters stay exact: 1e-15 is where Pillow rounds.
  const auto rounded = [](double value) { return std::nearbyint(value * 1e15) / 1e15; };
  const double cosine = rounded(std::cos(radians)), sine = rounded(std::sin(radians));
  return {cosine, sine,   -cosine * centre_x - sine * centre_y + centre_x,
          -sine,  cosine, sine * centre_x - cosine * centre_y + centre_y};
}

AffineMap shear_map(double x, double y) { return {1, x, 0, y, 1, 0}; }

AffineMap shift_map(int right, int down) {
  return {1, 0, -static_cast<double>(right), 0, 1, -static_cast<double>(down)};
}

void move_pixels(const uint8_t* source, const AffineMap& map, Interpolation interpolation, const PixelImage& image) {
  if (interpolation == Interpolation::nearest) {
    image.channels == 3 ? move_nearest<3>(source, map, image) : move_nearest<1>(source, map, image);
  } else {
    image.channels == 3 ? move_bilinear<3>(source, map, image) : move_bilinear<1>(source, map, image);
  }
}

void move_pixels(const uint8_t* source, const PerspectiveMap& map, Interpolation interpolation,
                 const PixelImage& image) {
  image.channels == 3 ? move_perspective<3>(source, map, interpolation, image)
                      : move_perspective<1>(source, map, interpolation, image);
}

void flip_vertically(const PixelImage& image) {
  const int64_t row = image.row_bytes();
  for (int y = 0; y < image.height / 2; ++y) {
    uint8_t* const upper = image.pixels + y * row;
    std::swap_ranges(upper, upper + row, image.pixels + (image.height - 1 - y) * row);
  }
}

void turn_quarters(const uint8_t* source, int turns, const PixelImage& image) {
  const int64_t last_column = image.width - 1, last_row = image.height - 1;
  const int64_t pixel = image.channels, row = image.row_bytes();
  // Where output pixel (0, 0) comes from, and how far a step to the right and a step down lead.
  const int64_t first = turns == 1   ? last_column * pixel
                        : turns == 2 ? last_row * row + last_column * pixel
                                     : last_row * row;
  const int64_t right = turns == 1 ? row : turns == 2 ? -pixel : -row;
  const int64_t down = turns == 1 ? -pixel : turns == 2 ? -row : pixel;
  uint8_t* out = image.pixels;
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* in = source + first + y * down;
    for (int64_t x = 0; x < image.width; ++x, in += right) {
      for (int c = 0; c < image.channels; ++c) *out++ = in[c];
    }
  }
}

}  // namespace stoker::data
