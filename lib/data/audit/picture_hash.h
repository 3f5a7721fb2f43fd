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

#include "data/resample/resample.h"

namespace stoker::data {

// A part of a picture, perhaps seen in a mirror: what somebody may have made a copy of.

/// In shares of the picture's width and height; [0, 1] is all of it.
struct PictureWindow {
  float left = 0, right = 1, top = 0, bottom = 1;
  bool mirrored = false;  ///< the picture is mirrored left to right first
};

/// Parts of one axis that copies are looked for in: all of it, and crops of 5 and 10 per cent, at either end or in the
/// middle.
inline constexpr std::array<std::array<float, 2>, 7> kWindowsOfAnAxis = {
    {{0, 1}, {0, 0.95f}, {0.05f, 1}, {0.025f, 0.975f}, {0, 0.9f}, {0.1f, 1}, {0.05f, 0.95f}}};

// A picture as 32 x 32 gray pixels, whatever its size and shape: near duplicates are found by it.

inline constexpr int kThumbnailSide = 32;

/// Rows of gray values.
using Thumbnail = std::array<uint8_t, kThumbnailSide * kThumbnailSide>;

/// The whole picture, each axis resized for itself. gray [height, width].
Thumbnail thumbnail_of(const uint8_t* gray, int width, int height, ResampleScratch& scratch);

/// Standard deviation of the gray values.
double contrast_of(const Thumbnail& thumbnail);

inline constexpr int kHashBits = 64;
using HashCoefficients = std::array<float, kHashBits>;

/// Statistics of a set of pictures: a bit is the side of the median on which its coefficient lies. So bits
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

  /// Coefficients of the whole picture, scaled to length 1; all 0 where it has no contrast.
  HashCoefficients coefficients(const Thumbnail& thumbnail) const;
  /// From at most some thousand of `all`. Throws nothing; without any all are 0 and 1.
  static UsualCoefficients usual(const std::vector<HashCoefficients>& all);
  static PictureHash hash_of(const HashCoefficients& coefficients, const UsualCoefficients& usual);
  /// Hashes of every window, as it is and mirrored; windows with the hash of an earlier one are left out. The first is
  /// that of the whole picture.
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

// Whether one picture shows a window of another: the window is shifted and stretched until both agree best, and their
// details are compared. Uses thumbnails, not hashes.

/// Agreement of the details (neither the mean, nor brightness that changes slowly, nor noise) of `copy` and of the part
/// of `original` that fits it best, looked for around `window`: -1 to 1, a correlation that other contrast lowers, too.
/// `detail_side`: pixels of the smaller of the two pictures along its shorter side, which limits the details.
///
/// The fit is that of Lucas and Kanade ("An Iterative Image Registration Technique", 1981) with four numbers for the
/// window and two for brightness and contrast. Copies agree by 0.9 and more, other photographs by 0.8 at most.
double aligned_agreement(const Thumbnail& original, const Thumbnail& copy, const PictureWindow& window,
                         int detail_side);

}  // namespace stoker::data
