// SPDX-License-Identifier: Apache-2.0
// Antialiased bilinear resizing of uint8 pixels in integer arithmetic, windowed and mirrored on the way out.
// Knows nothing of crops drawn at random, files or batches.
#pragma once

#include <cstdint>
#include <vector>

#include "data/scratch.h"

namespace stoker::data {

/// Sums of 8-bit pixels times weights that add up to 1 fit 32 bits with sign and room for rounding.
inline constexpr int kWeightBits = 22;

/// What to compute: the source is resized to resized_width x resized_height, of which the window of
/// out_width x out_height at (window_left, window_top) is written, mirrored left to right if asked.
struct ResampleTask {
  const uint8_t* source = nullptr;  ///< HWC
  int64_t source_stride = 0;        ///< bytes from row to row
  int source_width = 0, source_height = 0;
  int channels = 0;  ///< 1 or 3
  int resized_width = 0, resized_height = 0;
  int window_left = 0, window_top = 0;
  int out_width = 0, out_height = 0;
  bool mirror = false;
};

/// Taps of one axis. Output i is the sum over t < count[i] of source[first[i] + t] * weights[i * stride + t],
/// in units of 2^-kWeightBits.
struct AxisWeights {
  int stride = 0;
  int most_taps = 0;  ///< the largest count
  std::vector<int32_t> first, count, weights;
};

/// The taps of an axis two by two, for multiplying pairs of 16-bit numbers. A weight is high * 2^kLowBits +
/// low; the halves of the weights of taps 2 k and 2 k + 1 share a number, the even tap below. Beyond `count`
/// weights are 0.
struct PairedWeights {
  static constexpr int kLowBits = 11;
  int pairs = 0;                      ///< per output
  std::vector<int32_t> first;         ///< as in AxisWeights
  std::vector<int32_t> high_and_low;  ///< [output][pair][2]
};

/// Scratch of one worker.
struct ResampleScratch {
  AxisWeights columns, rows;
  PairedWeights paired_columns;
  ScratchBytes narrowed;  ///< rows after the horizontal pass
};

/// Triangle filter of radius max(scale, 1), weights computed in double, normalised, rounded to 22 bits: the
/// same bits as Pillow's Image.resize(BILINEAR) and, with it, torchvision's antialiased resize of PIL images.
/// `use_simd` is for tests: the bits are the same without.
void resample(const ResampleTask& task, ResampleScratch& scratch, uint8_t* out, bool use_simd = true);

}  // namespace stoker::data
