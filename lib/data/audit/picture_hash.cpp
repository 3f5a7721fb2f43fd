// SPDX-License-Identifier: Apache-2.0
#include "data/audit/picture_hash.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

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
        // The window of a mirrored picture lies on the other side.
        out.push_back({{mirrored ? 1 - right : left, mirrored ? 1 - left : right, top, bottom, mirrored}, hash});
      }
    }
  }
}

Thumbnail thumbnail_of(const uint8_t* gray, int width, int height, ResampleScratch& scratch) {
  Thumbnail thumbnail;
  ResampleTask task;
  task.source = gray;
  task.source_stride = width;
  task.source_width = width;
  task.source_height = height;
  task.channels = 1;
  task.resized_width = task.resized_height = task.out_width = task.out_height = kThumbnailSide;
  resample(task, scratch, thumbnail.data());
  return thumbnail;
}

double contrast_of(const Thumbnail& thumbnail) {
  double sum = 0, squares = 0;
  for (const double value : thumbnail) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(thumbnail.size());
  return std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count)));
}

namespace {

constexpr int kSide = kThumbnailSide;
constexpr size_t kPixels = kSide * kSide;
constexpr int kSteps = 4;
constexpr double kHopeless = 0.3;       // agreement from which no step leads to that of copies
constexpr double kWorthwhile = 5e-4;    // by which another step has to improve it
constexpr float kMaxAStep = 0.03f;      // of the picture, by which a border of the window moves
constexpr float kSlowDeviation = 2.5f;  // pixels; slower changes of brightness are not details

using Plane = std::array<float, kPixels>;

float& at(Plane& plane, int x, int y) { return plane[static_cast<size_t>(y * kSide + x)]; }
float at(const Plane& plane, int x, int y) { return plane[static_cast<size_t>(y * kSide + x)]; }

/// Gaussian blur, `deviation` in pixels; borders repeat.
void blur(const Plane& in, float deviation, Plane& out) {
  const int radius = static_cast<int>(std::ceil(3 * deviation));
  std::vector<float> weights(static_cast<size_t>(2 * radius + 1));
  float sum = 0;
  for (int i = -radius; i <= radius; ++i) {
    const float distance = static_cast<float>(i) / deviation;
    sum += weights[static_cast<size_t>(i + radius)] = std::exp(-distance * distance / 2);
  }
  Plane rows{};
  for (int y = 0; y < kSide; ++y) {
    for (int i = -radius; i <= radius; ++i) {
      const float weight = weights[static_cast<size_t>(i + radius)] / sum;
      const float* const from = in.data() + std::clamp(y + i, 0, kSide - 1) * kSide;
      float* const to = rows.data() + y * kSide;
      for (int x = 0; x < kSide; ++x) to[x] += weight * from[x];
    }
  }
  std::vector<float> padded(static_cast<size_t>(kSide + 2 * radius));
  for (int y = 0; y < kSide; ++y) {
    const float* const from = rows.data() + y * kSide;
    std::fill_n(padded.begin(), radius, from[0]);
    std::copy_n(from, kSide, padded.begin() + radius);
    std::fill_n(padded.end() - radius, radius, from[kSide - 1]);
    float* const to = out.data() + y * kSide;
    std::fill_n(to, kSide, 0.0f);
    for (int i = 0; i <= 2 * radius; ++i) {
      const float weight = weights[static_cast<size_t>(i)] / sum;
      for (int x = 0; x < kSide; ++x) to[x] += weight * padded[static_cast<size_t>(x + i)];
    }
  }
}

Plane smoothed(const Thumbnail& thumbnail, bool mirrored, float deviation) {
  Plane plane, out;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      at(plane, x, y) = thumbnail[static_cast<size_t>(y * kSide + (mirrored ? kSide - 1 - x : x))];
    }
  }
  blur(plane, deviation, out);
  return out;
}

/// Without mean and without what changes slowly.
Plane details_of(const Plane& plane) {
  Plane slow, details;
  blur(plane, kSlowDeviation, slow);
  float sum = 0;
  for (size_t i = 0; i < kPixels; ++i) sum += details[i] = plane[i] - slow[i];
  for (float& value : details) value -= sum / kPixels;
  return details;
}

/// For planes without mean: 1 where they are equal, less where one has more contrast (Lin, "A Concordance Correlation
/// Coefficient to Evaluate Reproducibility", Biometrics 1989).
double agreement_of(const Plane& a, const Plane& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < kPixels; ++i) {
    ab += double{a[i]} * double{b[i]};
    aa += double{a[i]} * double{a[i]};
    bb += double{b[i]} * double{b[i]};
  }
  return 2 * ab / (aa + bb + 1e-9);
}

/// The window of `plane`, resized to all of it; bilinear.
Plane seen_through(const Plane& plane, const std::array<float, 4>& window) {
  std::array<int, kSide> first_x{}, first_y{};
  std::array<float, kSide> part_x{}, part_y{};
  const auto place = [](float low, float high, int i, int& first, float& part) {
    const float position = (low + (static_cast<float>(i) + 0.5f) / kSide * (high - low)) * kSide - 0.5f;
    const float inside = std::clamp(position, 0.0f, static_cast<float>(kSide - 1));
    first = std::min(static_cast<int>(inside), kSide - 2);
    part = inside - static_cast<float>(first);
  };
  for (int i = 0; i < kSide; ++i) {
    const auto k = static_cast<size_t>(i);
    place(window[0], window[1], i, first_x[k], part_x[k]);
    place(window[2], window[3], i, first_y[k], part_y[k]);
  }
  Plane out;
  for (int y = 0; y < kSide; ++y) {
    const int row = first_y[static_cast<size_t>(y)];
    const float down = part_y[static_cast<size_t>(y)];
    for (int x = 0; x < kSide; ++x) {
      const int column = first_x[static_cast<size_t>(x)];
      const float right = part_x[static_cast<size_t>(x)];
      const float above = at(plane, column, row) * (1 - right) + at(plane, column + 1, row) * right;
      const float below = at(plane, column, row + 1) * (1 - right) + at(plane, column + 1, row + 1) * right;
      at(out, x, y) = above * (1 - down) + below * down;
    }
  }
  return out;
}

constexpr size_t kUnknowns = 6;
using Equations = std::array<std::array<double, kUnknowns + 1>, kUnknowns>;

/// Solves in place by elimination; the last column becomes the solution. False where it is not determined.
bool solve(Equations& equations) {
  for (size_t k = 0; k < kUnknowns; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < kUnknowns; ++i) {
      if (std::abs(equations[i][k]) > std::abs(equations[pivot][k])) pivot = i;
    }
    std::swap(equations[k], equations[pivot]);
    if (std::abs(equations[k][k]) < 1e-9) return false;
    for (size_t i = 0; i < kUnknowns; ++i) {
      if (i == k) continue;
      const double factor = equations[i][k] / equations[k][k];
      for (size_t j = k; j <= kUnknowns; ++j) equations[i][j] -= factor * equations[k][j];
    }
  }
  for (size_t k = 0; k < kUnknowns; ++k) equations[k][kUnknowns] /= equations[k][k];
  return true;
}

/// By how much to move left, right, top and bottom so that what is seen looks more like `copy`; false: undecidable.
bool improvement(const Plane& seen, const Plane& copy, const std::array<float, 4>& window, std::array<float, 4>& move) {
  Equations equations{};
  const float per_x = 1 / (window[1] - window[0]), per_y = 1 / (window[3] - window[2]);
  for (int y = 1; y < kSide - 1; ++y) {
    const double v = (y + 0.5) / kSide;
    for (int x = 1; x < kSide - 1; ++x) {
      const double u = (x + 0.5) / kSide;
      // The gradient of brightness along the picture, by which the borders' moves are multiplied.
      const double dx = (at(seen, x + 1, y) - at(seen, x - 1, y)) / 2 * kSide * per_x;
      const double dy = (at(seen, x, y + 1) - at(seen, x, y - 1)) / 2 * kSide * per_y;
      const std::array<double, kUnknowns> row = {dx * (1 - u), dx * u, dy * (1 - v), dy * v, at(seen, x, y), 1};
      const double wanted = at(copy, x, y);
      for (size_t i = 0; i < kUnknowns; ++i) {
        for (size_t j = i; j < kUnknowns; ++j) equations[i][j] += row[i] * row[j];
        equations[i][kUnknowns] += row[i] * wanted;
      }
    }
  }
  for (size_t i = 0; i < kUnknowns; ++i) {
    for (size_t j = 0; j < i; ++j) equations[i][j] = equations[j][i];
    equations[i][i] *= 1 + 1e-6;
  }
  if (!solve(equations)) return false;
  const double gain = equations[4][kUnknowns];
  if (gain < 0.2) return false;
  for (size_t i = 0; i < 4; ++i) {
    move[i] = std::clamp(static_cast<float>(equations[i][kUnknowns] / gain), -kMaxAStep, kMaxAStep);
  }
  return true;
}

}  // namespace

double aligned_agreement(const Thumbnail& original, const Thumbnail& copy, const PictureWindow& window,
                         int detail_side) {
  const float deviation =
      0.8f * std::max(1.0f, static_cast<float>(kSide) / static_cast<float>(std::max(8, detail_side)));
  const Plane whole = smoothed(original, window.mirrored, deviation), wanted = smoothed(copy, false, deviation);
  const Plane wanted_details = details_of(wanted);
  std::array<float, 4> at_window = {window.left, window.right, window.top, window.bottom};
  double best = -1;
  for (int step = 0; step <= kSteps; ++step) {
    const Plane seen = seen_through(whole, at_window);
    const double agreement = agreement_of(details_of(seen), wanted_details);
    const bool improves = agreement > std::max(kHopeless, best + kWorthwhile);
    best = std::max(best, agreement);
    std::array<float, 4> move{};
    if (!improves || step == kSteps || !improvement(seen, wanted, at_window, move)) break;
    for (size_t i = 0; i < 4; ++i) at_window[i] = std::clamp(at_window[i] + move[i], -0.03f, 1.03f);
  }
  return best;
}

}  // namespace stoker::data
