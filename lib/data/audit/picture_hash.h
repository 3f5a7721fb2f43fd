// SPDX-License-Identifier: Apache-2.0
// 64 bits of what a picture looks like from afar: signs of its lowest cosine coefficients, of the whole picture and of
// windows of it. A copy that was resized, recompressed, mirrored or cropped a little differs from one of the windows'
// hashes in few bits; other pictures differ in half of them.
//
// A coefficient of a window is linear in the thumbnail: the matrix of one axis integrates a cosine over the part of
// each pixel that lies inside the window. So that windows cost no resampling: coefficients = A * thumbnail * B^T. After
// the "pHash" of Zauner, "Implementation and Benchmarking of Perceptual Image Hash Functions", 2010, which takes the
// whole picture and one threshold for all bits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/audit/picture_window.h"
#include "data/audit/thumbnail.h"

namespace stoker::data {

inline constexpr int kHashBits = 64;
using HashCoefficients = std::array<float, kHashBits>;

/// What is usual in a set of pictures: a bit is the side of the median on which its coefficient lies. So bits
/// distinguish pictures where all look alike, as clothes on black do.
struct UsualCoefficients {
  HashCoefficients median{}, deviation{};
};

/// A hash, and how far each of its bits is from turning over, in deviations.
struct PictureHash {
  uint64_t bits = 0;
  HashCoefficients margin{};
};

struct WindowHash {
  PictureWindow window;
  PictureHash hash;
};

class PictureHasher {
 public:
  PictureHasher();

  /// Of the whole picture, scaled to length 1; all 0 where it has no contrast.
  HashCoefficients coefficients(const Thumbnail& thumbnail) const;
  /// Of at most some thousand of `all`. Throws nothing; without any all are 0 and 1.
  static UsualCoefficients usual(const std::vector<HashCoefficients>& all);
  static PictureHash hash_of(const HashCoefficients& coefficients, const UsualCoefficients& usual);
  /// Of every window, as it is and mirrored; windows with the hash of an earlier one are left out. The first is that of
  /// the whole picture.
  void window_hashes(const Thumbnail& thumbnail, const UsualCoefficients& usual, std::vector<WindowHash>& out) const;

 private:
  static constexpr int kFrequencies = 10;  // of an axis
  using AxisMatrix = std::array<std::array<float, kThumbnailSide>, kFrequencies>;
  using Half = std::array<std::array<float, kThumbnailSide>, kFrequencies>;  ///< vertical frequency, column

  Half vertical(const Thumbnail& thumbnail, const AxisMatrix& rows) const;
  HashCoefficients combine(const Half& half, const AxisMatrix& columns) const;

  std::array<AxisMatrix, kWindowsOfAnAxis.size()> axes_{};
  std::array<std::array<int, 2>, kHashBits> places_{};  ///< vertical and horizontal frequency of each bit
};

}  // namespace stoker::data
