// SPDX-License-Identifier: Apache-2.0
// Antialiased resizing of uint8 pixels in integer arithmetic, windowed and mirrored on the way out; of a
// whole image, or of rows as they come.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "data/image/decode.h"
#include "data/storage/scratch.h"
#include "kernels/resample_rows_avx2.h"

namespace stoker::data {

using kernels::kWeightBits;

/// How a resized pixel is computed from those around it.
enum class ResizeFilter { bilinear, bicubic, lanczos };

/// The task: the source is resized to resized_width x resized_height, of which the window of
/// out_width x out_height at (window_left, window_top), which lies in it, is written, mirrored left to right if
/// requested.
struct ResampleTask {
  const uint8_t* source = nullptr;  ///< HWC
  int64_t source_stride = 0;        ///< bytes from row to row
  int source_width = 0, source_height = 0;
  int channels = 0;  ///< 1 or 3
  int resized_width = 0, resized_height = 0;
  int window_left = 0, window_top = 0;
  int out_width = 0, out_height = 0;
  int64_t out_stride = 0;  ///< bytes from row to row of the output; 0: one right after the other
  int64_t out_row_bytes() const { return out_stride > 0 ? out_stride : int64_t{out_width} * channels; }
  bool mirror = false;
  ResizeFilter filter = ResizeFilter::bilinear;
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
/// The filter (a triangle of radius 1; the cubic convolution of Keys 1981 with a = -0.5, radius 2; a windowed sinc of
/// radius 3) is widened by max(scale, 1), its weights computed in double, normalised, rounded to 22 bits: the same bits
/// as Pillow's Image.resize(BILINEAR, BICUBIC, LANCZOS) and, with it, torchvision's antialiased resize of PIL images.
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
  int next_row_ = 0;     ///< next row of the source
  int next_output_ = 0;  ///< row
};

/// The whole of task.source.
void resample(const ResampleTask& task, ResampleScratch& scratch, uint8_t* out, bool use_simd = true);

// Between a decoder and a row of a batch: pixels are resized while they are still in the processor's cache, and the
// image is nowhere as a whole.

class ResizedRows : public RowSink {
 public:
  /// `task`: of the part of the image that begins at (left, top); its source is not looked at. What is passed by
  /// reference outlives this. The output is complete when the decode has succeeded.
  ResizedRows(const ResampleTask& task, int left, int top, ResampleScratch& scratch, ScratchBytes& band, uint8_t* out)
      : task_(task), left_(left), top_(top), band_(band), resampler_(task, scratch, out) {}

  /// The part to decode: the rows of the part that outputs depend on.
  Region needed() const {
    return {left_, top_ + resampler_.first_row(), task_.source_width, resampler_.end_row() - resampler_.first_row()};
  }
  int64_t resize_nanoseconds() const { return resize_nanoseconds_; }

  void begin(const Region& held, int channels) override;
  uint8_t* next_row() override;
  void end() override { resize_band(); }

 private:
  void resize_band();

  const ResampleTask task_;
  const int left_, top_;  ///< pixels of the image
  ScratchBytes& band_;
  RowResampler resampler_;
  int64_t row_bytes_ = 0, offset_ = 0;  ///< size of a decoded row; bytes from its beginning to the part
  int rows_to_skip_ = 0;                ///< above the part; what cannot be cut is decoded as a whole
  int rows_in_band_ = 0;
  int64_t resize_nanoseconds_ = 0;
};

}  // namespace stoker::data
