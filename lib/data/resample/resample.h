// SPDX-License-Identifier: Apache-2.0
// Antialiased bilinear resizing of uint8 pixels in integer arithmetic, windowed and mirrored on the way out; of a
// whole image, or of rows as they come.
#pragma once

#include <cstdint>
#include <vector>

#include "data/storage/scratch.h"
#include "kernels/resample_rows_avx2.h"

namespace stoker::data {

using kernels::kWeightBits;

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

/// The taps of an axis two by two, as kernels::PairedTaps points to them.
struct PairedWeights {
  int pairs = 0;                      ///< per output
  std::vector<int32_t> first;         ///< as in AxisWeights
  std::vector<int32_t> high_and_low;  ///< [output][pair][2]
};

/// Scratch of one worker.
struct ResampleScratch {
  AxisWeights columns, rows;
  PairedWeights paired_columns;
  ScratchBytes narrowed;  ///< some rows after the horizontal pass
};

/// Resizes rows of a source as they come, top to bottom, and holds only those that outputs still need.
/// Triangle filter of radius max(scale, 1), weights computed in double, normalised, rounded to 22 bits: the same bits
/// as Pillow's Image.resize(BILINEAR) and, with it, torchvision's antialiased resize of PIL images.
class RowResampler {
 public:
  /// Vectors run along this many rows side by side.
  static constexpr int kRowsAtOnce = 4;

  /// `scratch` and `out` outlive this; task.source is not looked at. `use_simd` is for tests: the bits are the same
  /// without.
  RowResampler(const ResampleTask& task, ResampleScratch& scratch, uint8_t* out, bool use_simd = true);

  /// Source rows first_row()..end_row() are what the outputs depend on: the first row to be added, and one past the
  /// last.
  int first_row() const { return first_row_; }
  int end_row() const { return end_row_; }
  /// Bytes beyond the end of a row that add() may read for speed, as far as its `readable` covers them.
  int64_t reads_beyond() const { return reads_beyond_; }

  /// The next `count` rows, at most kRowsAtOnce, `stride` bytes apart; `readable` bytes lie at `rows`, the last row's
  /// own at least. Writes what outputs this completes.
  void add(const uint8_t* rows, int64_t stride, int count, int64_t readable);
  /// As if nothing had been added.
  void restart();

 private:
  void make_room(int rows);

  const ResampleTask task_;
  ResampleScratch& scratch_;
  uint8_t* const out_;
  bool use_simd_;
  int first_row_ = 0, end_row_ = 0;
  int64_t reads_beyond_ = 0;
  int64_t stride_ = 0;   ///< bytes; of a row that was narrowed
  int capacity_ = 0;     ///< such rows
  int held_from_ = 0;    ///< the source row that lies first among them
  int next_row_ = 0;     ///< of the source
  int next_output_ = 0;  ///< row
};

/// The whole of task.source.
void resample(const ResampleTask& task, ResampleScratch& scratch, uint8_t* out, bool use_simd = true);

}  // namespace stoker::data
