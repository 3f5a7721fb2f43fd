// SPDX-License-Identifier: Apache-2.0
// Between a decoder and a row of a batch: pixels are resized while they are still in the processor's cache, and the
// image is nowhere as a whole.
#pragma once

#include <chrono>
#include <cstdint>

#include "data/image/decode.h"
#include "data/resample/resample.h"

namespace stoker::data {

class ResizedRows : public RowSink {
 public:
  /// `task`: of the part of the image that begins at (left, top); its source is not looked at. What is passed by
  /// reference outlives this. The output is complete when the decode has succeeded.
  ResizedRows(const ResampleTask& task, int left, int top, ResampleScratch& scratch, ScratchBytes& band, uint8_t* out)
      : task_(task), left_(left), top_(top), band_(band), resampler_(task, scratch, out) {}

  /// What has to be decoded: the rows of the part that outputs depend on.
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
  int64_t row_bytes_ = 0, offset_ = 0;  ///< of a decoded row; from its beginning to the part
  int rows_to_skip_ = 0;                ///< above the part; what cannot be cut is decoded as a whole
  int rows_in_band_ = 0;
  int64_t resize_nanoseconds_ = 0;
};

}  // namespace stoker::data
