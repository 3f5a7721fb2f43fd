// SPDX-License-Identifier: Apache-2.0
#include "data/resample/resized_rows.h"

#include <algorithm>

namespace stoker::data {
namespace {

constexpr int kBandRows = 16;  // what libjpeg decodes at a time with chroma at half size

}  // namespace

void ResizedRows::begin(const Region& held, int channels) {
  row_bytes_ = int64_t{held.width} * channels;
  offset_ = int64_t{left_ - held.left} * channels;
  rows_in_band_ = 0;
  rows_to_skip_ = needed().top - held.top;
  resampler_.restart();
  const auto needed = static_cast<size_t>(kBandRows * row_bytes_ + resampler_.reads_beyond());
  if (band_.size() < needed) band_.resize(needed);
}

uint8_t* ResizedRows::next_row() {
  if (rows_to_skip_ > 0) {
    --rows_to_skip_;
    return band_.data();
  }
  if (rows_in_band_ == kBandRows) resize_band();
  return band_.data() + row_bytes_ * rows_in_band_++;
}

void ResizedRows::resize_band() {
  const auto begin = std::chrono::steady_clock::now();
  for (int y = 0; y < rows_in_band_; y += RowResampler::kRowsAtOnce) {
    const int64_t at = y * row_bytes_ + offset_;
    resampler_.add(band_.data() + at, row_bytes_, std::min(RowResampler::kRowsAtOnce, rows_in_band_ - y),
                   static_cast<int64_t>(band_.size()) - at);
  }
  rows_in_band_ = 0;
  resize_nanoseconds_ += (std::chrono::steady_clock::now() - begin) / std::chrono::nanoseconds(1);
}

}  // namespace stoker::data
