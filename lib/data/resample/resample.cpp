// SPDX-License-Identifier: Apache-2.0
#include "data/resample/resample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "data/storage/scratch.h"
#include "kernels/cpu.h"

namespace stoker::data {

// The inner loops of resizing in plain C++. kernels/resample_rows_avx2 has the same bits.

/// One row of `channels` (1 or 3) through the taps of the columns.
void narrow_row(const uint8_t* in, int channels, const AxisWeights& columns, int outputs, uint8_t* out);
/// `out`[i] = the weighted sum of byte i of `count` rows that lie `stride` bytes apart.
void merge_rows(const uint8_t* in, int64_t stride, const int32_t* weights, int count, int64_t bytes, uint8_t* out);

namespace {

constexpr int32_t kHalfWeight = 1 << (kWeightBits - 1);

uint8_t clipped_byte(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

template <int kChannels>
void narrow_row_of(const uint8_t* in, const AxisWeights& columns, int outputs, uint8_t* out) {
  for (int i = 0; i < outputs; ++i) {
    const uint8_t* pixel = in + static_cast<int64_t>(columns.first[static_cast<size_t>(i)]) * kChannels;
    const int32_t* const weights = columns.weights.data() + static_cast<int64_t>(i) * columns.stride;
    int32_t sums[kChannels];
    for (int c = 0; c < kChannels; ++c) sums[c] = kHalfWeight;
    for (int t = 0; t < columns.count[static_cast<size_t>(i)]; ++t, pixel += kChannels) {
      for (int c = 0; c < kChannels; ++c) sums[c] += pixel[c] * weights[t];
    }
    for (int c = 0; c < kChannels; ++c) *out++ = clipped_byte(sums[c]);
  }
}

}  // namespace

void narrow_row(const uint8_t* in, int channels, const AxisWeights& columns, int outputs, uint8_t* out) {
  if (channels == 3) {
    narrow_row_of<3>(in, columns, outputs, out);
  } else {
    narrow_row_of<1>(in, columns, outputs, out);
  }
}

void merge_rows(const uint8_t* in, int64_t stride, const int32_t* weights, int count, int64_t bytes, uint8_t* out) {
  constexpr int64_t kBlock = 256;
  int32_t sums[kBlock];
  for (int64_t start = 0; start < bytes; start += kBlock) {
    const int64_t n = std::min(kBlock, bytes - start);
    std::fill(sums, sums + n, kHalfWeight);
    for (int t = 0; t < count; ++t) {
      const uint8_t* const row = in + t * stride + start;
      const int32_t weight = weights[t];
      for (int64_t i = 0; i < n; ++i) sums[i] += row[i] * weight;
    }
    for (int64_t i = 0; i < n; ++i) out[start + i] = clipped_byte(sums[i]);
  }
}

namespace {

constexpr int kLeastHeldRows = 64;  // so that moving them is rare; 43 kB at 224 pixels

double support_of(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::bilinear: return 1;
    case ResizeFilter::bicubic: return 2;
    case ResizeFilter::lanczos: return 3;
  }
  return 1;
}

double sinc(double x) {
  if (x == 0) return 1;
  x *= M_PI;
  return std::sin(x) / x;
}

/// A filter at `x` in pixels of the smaller image; 0 beyond its support.
double filter_at(ResizeFilter filter, double x) {
  const double distance = std::abs(x);
  switch (filter) {
    case ResizeFilter::bilinear: return distance < 1 ? 1 - distance : 0;
    case ResizeFilter::bicubic: {
      constexpr double kA = -0.5;
      if (distance < 1) return ((kA + 2) * distance - (kA + 3)) * distance * distance + 1;
      return distance < 2 ? (((distance - 5) * distance + 8) * distance - 4) * kA : 0;
    }
    case ResizeFilter::lanczos: return -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  }
  return 0;
}

int32_t rounded_weight(double weight) {
  return static_cast<int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kWeightBits));
}

/// Weights for outputs window..window+outputs of an axis resized from `in` to `resized` pixels.
void compute_axis(ResizeFilter filter, int in, int resized, int window, int outputs, bool mirror, AxisWeights& axis) {
  const double scale = static_cast<double>(in) / resized;
  const double widened = std::max(scale, 1.0), radius = support_of(filter) * widened;
  axis.stride = 2 * static_cast<int>(std::ceil(radius)) + 1;
  axis.most_taps = 0;
  axis.first.resize(static_cast<size_t>(outputs));
  axis.count.resize(static_cast<size_t>(outputs));
  axis.weights.resize(static_cast<size_t>(outputs) * static_cast<size_t>(axis.stride));
  std::vector<double> exact(static_cast<size_t>(axis.stride));
  for (int i = 0; i < outputs; ++i) {
    const double center = (window + (mirror ? outputs - 1 - i : i) + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - radius + 0.5));
    const int count = std::min(in, static_cast<int>(center + radius + 0.5)) - first;
    double total = 0;
    for (int t = 0; t < count; ++t) {
      exact[static_cast<size_t>(t)] = filter_at(filter, (first + t - center + 0.5) * (1 / widened));
      total += exact[static_cast<size_t>(t)];
    }
    int32_t* const weights = axis.weights.data() + static_cast<int64_t>(i) * axis.stride;
    for (int t = 0; t < count; ++t) {
      weights[t] = rounded_weight(exact[static_cast<size_t>(t)] / total);
    }
    axis.first[static_cast<size_t>(i)] = first;
    axis.count[static_cast<size_t>(i)] = count;
    axis.most_taps = std::max(axis.most_taps, count);
  }
}

/// Two numbers of 16 bits with sign in one, `below` in the lower half.
int32_t halves(int32_t below, int32_t above) {
  return static_cast<int32_t>((static_cast<uint32_t>(below) & 0xFFFF) | static_cast<uint32_t>(above) << 16);
}

void pair_weights(const AxisWeights& axis, PairedWeights& paired) {
  constexpr int32_t kLowMask = (1 << kernels::kLowWeightBits) - 1;
  const size_t outputs = axis.first.size();
  paired.pairs = (axis.most_taps + 1) / 2;
  paired.first.assign(axis.first.begin(), axis.first.end());
  paired.high_and_low.resize(outputs * static_cast<size_t>(paired.pairs) * 2);
  int32_t* out = paired.high_and_low.data();
  for (size_t i = 0; i < outputs; ++i) {
    const int32_t* const weights = axis.weights.data() + static_cast<int64_t>(i) * axis.stride;
    for (int t = 0; t < 2 * paired.pairs; t += 2) {
      const int32_t even = t < axis.count[i] ? weights[t] : 0, odd = t + 1 < axis.count[i] ? weights[t + 1] : 0;
      *out++ = halves(even >> kernels::kLowWeightBits, odd >> kernels::kLowWeightBits);
      *out++ = halves(even & kLowMask, odd & kLowMask);
    }
  }
}

}  // namespace

RowResampler::RowResampler(const ResampleTask& task, ResampleScratch& scratch, uint8_t* out, bool use_simd)
    : task_(task), scratch_(scratch), out_(out), use_simd_(use_simd && task.channels == 3 && kernels::has_avx2()) {
  compute_axis(task.filter, task.source_width, task.resized_width, task.window_left, task.out_width, task.mirror,
               scratch.columns);
  compute_axis(task.filter, task.source_height, task.resized_height, task.window_top, task.out_height, false,
               scratch.rows);
  first_row_ = scratch.rows.first.front();
  end_row_ = scratch.rows.first.back() + scratch.rows.count.back();
  if (use_simd_) {
    pair_weights(scratch.columns, scratch.paired_columns);
    const int64_t last = std::max(scratch.columns.first.front(), scratch.columns.first.back());
    const int64_t read = 3 * last + kernels::bytes_of_pairs(scratch.paired_columns.pairs);
    reads_beyond_ = std::max<int64_t>(0, read - int64_t{3} * task.source_width);
  }
  stride_ = int64_t{task.out_width} * task.channels + 4;  // space for a store beyond the last pixel
  capacity_ = std::max(kLeastHeldRows, 2 * (scratch.rows.most_taps + kRowsAtOnce));
  const auto needed = static_cast<size_t>(stride_ * capacity_);
  if (scratch.narrowed.size() < needed) scratch.narrowed.resize(needed);
  restart();
}

void RowResampler::restart() {
  held_from_ = next_row_ = first_row_;
  next_output_ = 0;
}

/// Moves the rows that outputs still need to the front when there is no space for the next ones.
void RowResampler::make_room(int rows) {
  if (next_row_ - held_from_ + rows <= capacity_) return;
  const int needed_from = std::min(next_row_, scratch_.rows.first[static_cast<size_t>(next_output_)]);
  uint8_t* const held = scratch_.narrowed.data();
  std::memmove(held, held + (needed_from - held_from_) * stride_,
               static_cast<size_t>((next_row_ - needed_from) * stride_));
  held_from_ = needed_from;
}

void RowResampler::add(const uint8_t* rows, int64_t stride, int count, int64_t readable) {
  if (next_output_ == task_.out_height) return;
  make_room(count);
  uint8_t* const narrowed = scratch_.narrowed.data() + (next_row_ - held_from_) * stride_;
  bool is_done = false;
  const int64_t read = (count - 1) * stride + int64_t{task_.source_width} * task_.channels + reads_beyond_;
  if (use_simd_ && count == kRowsAtOnce && read <= readable) {
    const PairedWeights& paired = scratch_.paired_columns;
    kernels::narrow_four_rows_avx2(rows, stride, {paired.pairs, paired.first.data(), paired.high_and_low.data()},
                                   task_.out_width, narrowed, stride_);
    is_done = true;
  }
  const auto merge = use_simd_ ? kernels::merge_rows_avx2 : merge_rows;
  for (int y = 0; y < count && !is_done; ++y) {
    narrow_row(rows + y * stride, task_.channels, scratch_.columns, task_.out_width, narrowed + y * stride_);
  }
  next_row_ += count;
  const AxisWeights& taps = scratch_.rows;
  const int64_t row_bytes = int64_t{task_.out_width} * task_.channels, out_bytes = task_.out_row_bytes();
  for (; next_output_ < task_.out_height; ++next_output_) {
    const auto i = static_cast<size_t>(next_output_);
    if (taps.first[i] + taps.count[i] > next_row_) break;
    merge(scratch_.narrowed.data() + (taps.first[i] - held_from_) * stride_, stride_,
          taps.weights.data() + int64_t{next_output_} * taps.stride, taps.count[i], row_bytes,
          out_ + next_output_ * out_bytes);
  }
}

void resample(const ResampleTask& task, ResampleScratch& scratch, uint8_t* out, bool use_simd) {
  RowResampler rows(task, scratch, out, use_simd);
  const int64_t source_bytes =
      (task.source_height - 1) * task.source_stride + int64_t{task.source_width} * task.channels;
  for (int y = rows.first_row(); y < rows.end_row(); y += RowResampler::kRowsAtOnce) {
    const int64_t offset = y * task.source_stride;
    rows.add(task.source + offset, task.source_stride, std::min(RowResampler::kRowsAtOnce, rows.end_row() - y),
             source_bytes - offset);
  }
}

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
