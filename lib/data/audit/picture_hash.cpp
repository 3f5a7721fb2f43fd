// SPDX-License-Identifier: Apache-2.0
#include "data/audit/picture_hash.h"

#include <algorithm>
#include <cmath>

namespace stoker::data {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// Integral of cos(pi k (x - low) / (high - low)) from low to x.
double cosine_integral(int k, double x, double low, double high) {
  if (k == 0) return x - low;
  const double rate = kPi * k / (high - low);
  return std::sin(rate * (x - low)) / rate;
}

}  // namespace

PictureHasher::PictureHasher() {
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    const double low = kWindowsOfAnAxis[axis][0], high = kWindowsOfAnAxis[axis][1];
    for (int k = 0; k < kFrequencies; ++k) {
      for (int pixel = 0; pixel < kThumbnailSide; ++pixel) {
        const double begin = std::clamp(static_cast<double>(pixel) / kThumbnailSide, low, high);
        const double end = std::clamp((pixel + 1.0) / kThumbnailSide, low, high);
        axes_[axis][static_cast<size_t>(k)][static_cast<size_t>(pixel)] = static_cast<float>(
            (cosine_integral(k, end, low, high) - cosine_integral(k, begin, low, high)) / (high - low));
      }
    }
  }
  // The lowest frequencies first, without the mean.
  std::vector<std::array<int, 2>> all;
  for (int v = 0; v < kFrequencies; ++v) {
    for (int h = 0; h < kFrequencies; ++h) {
      if (v + h > 0) all.push_back({v, h});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const std::array<int, 2>& a, const std::array<int, 2>& b) {
    return a[0] * a[0] + a[1] * a[1] < b[0] * b[0] + b[1] * b[1];
  });
  std::copy_n(all.begin(), kHashBits, places_.begin());
}

PictureHasher::Half PictureHasher::vertical(const Thumbnail& thumbnail, const AxisMatrix& rows) const {
  Half half{};
  for (size_t k = 0; k < half.size(); ++k) {
    for (size_t y = 0; y < kThumbnailSide; ++y) {
      const uint8_t* const row = thumbnail.data() + y * kThumbnailSide;
      for (size_t x = 0; x < kThumbnailSide; ++x) half[k][x] += rows[k][y] * static_cast<float>(row[x]);
    }
  }
  return half;
}

HashCoefficients PictureHasher::combine(const Half& half, const AxisMatrix& columns) const {
  HashCoefficients coefficients;
  float squares = 0;
  for (size_t bit = 0; bit < kHashBits; ++bit) {
    const auto& of_row = half[static_cast<size_t>(places_[bit][0])];
    const auto& of_column = columns[static_cast<size_t>(places_[bit][1])];
    float sum = 0;
    for (size_t x = 0; x < kThumbnailSide; ++x) sum += of_row[x] * of_column[x];
    coefficients[bit] = sum;
    squares += sum * sum;
  }
  const float scale = squares > 1e-6f ? 1 / std::sqrt(squares) : 0;
  for (float& value : coefficients) value *= scale;
  return coefficients;
}

HashCoefficients PictureHasher::coefficients(const Thumbnail& thumbnail) const {
  return combine(vertical(thumbnail, axes_[0]), axes_[0]);
}

UsualCoefficients PictureHasher::usual(const std::vector<HashCoefficients>& all) {
  constexpr size_t kMax = 8192;
  UsualCoefficients usual;
  usual.deviation.fill(1);
  const size_t step = std::max<size_t>(1, all.size() / kMax);
  std::vector<float> values;
  for (size_t bit = 0; bit < kHashBits && !all.empty(); ++bit) {
    values.clear();
    for (size_t i = 0; i < all.size(); i += step) values.push_back(all[i][bit]);
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    usual.median[bit] = *middle;
    double squares = 0;
    for (const float value : values) squares += std::pow(value - usual.median[bit], 2);
    usual.deviation[bit] = static_cast<float>(std::sqrt(squares / static_cast<double>(values.size())) + 1e-9);
  }
  return usual;
}

PictureHash PictureHasher::hash_of(const HashCoefficients& coefficients, const UsualCoefficients& usual) {
  PictureHash hash;
  for (size_t bit = 0; bit < kHashBits; ++bit) {
    const float above = (coefficients[bit] - usual.median[bit]) / usual.deviation[bit];
    hash.bits |= uint64_t{above > 0} << bit;
    hash.margin[bit] = std::abs(above);
  }
  return hash;
}

void PictureHasher::window_hashes(const Thumbnail& thumbnail, const UsualCoefficients& usual,
                                  std::vector<WindowHash>& out) const {
  out.clear();
  for (size_t v = 0; v < axes_.size(); ++v) {
    const Half half = vertical(thumbnail, axes_[v]);
    for (size_t h = 0; h < axes_.size(); ++h) {
      HashCoefficients coefficients = combine(half, axes_[h]);
      for (const bool mirrored : {false, true}) {
        if (mirrored) {  // a cosine of an odd frequency changes its sign
          for (size_t bit = 0; bit < kHashBits; ++bit) {
            if (places_[bit][1] % 2 == 1) coefficients[bit] = -coefficients[bit];
          }
        }
        const PictureHash hash = hash_of(coefficients, usual);
        const auto same = [&](const WindowHash& other) { return other.hash.bits == hash.bits; };
        if (std::any_of(out.begin(), out.end(), same)) continue;
        const auto [left, right] = kWindowsOfAnAxis[h];
        const auto [top, bottom] = kWindowsOfAnAxis[v];
        // Of a mirrored picture the window lies on the other side.
        out.push_back({{mirrored ? 1 - right : left, mirrored ? 1 - left : right, top, bottom, mirrored}, hash});
      }
    }
  }
}

}  // namespace stoker::data
