// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv_weight_gradient.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "kernels/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define STOKER_HAS_CONV_KERNELS 1
#include <immintrin.h>
// GCC 12 warns of registers that its own header leaves undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace stoker::kernels {

#ifdef STOKER_HAS_CONV_KERNELS
#define STOKER_BFLOAT16 __attribute__((target("avx512f,avx512bw,avx512bf16")))
#define STOKER_BFLOAT16_INLINE STOKER_BFLOAT16 inline __attribute__((always_inline))

namespace {

constexpr int64_t kPositions = 96;  // of outputs that are gone through at a time: both sides fit the second cache

/// A position of the output and the position of the input that a weight multiplies it with, as places of values.
struct TapPair {
  int64_t in = 0, out = 0;
};

/// Some rows of the output of some pairs of images, small enough for the cache.
class RowBlock {
 public:
  RowBlock(const ConvShape2d& shape, int64_t in_channels, int64_t first_row, int64_t rows, int64_t pairs)
      : shape_(shape), first_row_(first_row), rows_(rows) {
    first_in_row_ = std::max<int64_t>(0, first_row * shape.stride - shape.padding);
    in_rows_ =
        std::min(shape.in_height, (first_row + rows - 1) * shape.stride - shape.padding + shape.kernel) - first_in_row_;
    in_values_ = std::max<int64_t>(0, in_rows_) * shape.in_width * in_channels * 2;
    out_values_ = rows * shape.out_width * shape.out_channels * 2;
    ends_.push_back(0);
    for (int64_t row = 0; row < shape.kernel; ++row) {
      for (int64_t column = 0; column < shape.kernel; ++column) {
        for (int64_t pair = 0; pair < pairs; ++pair) add_tap_pairs(row, column, pair, in_channels);
        ends_.push_back(static_cast<int64_t>(tap_pairs_.size()));
      }
    }
  }

  int64_t in_values() const { return in_values_; }    ///< input values in one pair of images
  int64_t out_values() const { return out_values_; }  ///< output values in one pair of images
  /// Positions of an image that this block sees.
  int64_t first_in_position() const { return first_in_row_ * shape_.in_width; }
  int64_t in_positions() const { return std::max<int64_t>(0, in_rows_) * shape_.in_width; }
  int64_t first_out_position() const { return first_row_ * shape_.out_width; }
  int64_t out_positions() const { return rows_ * shape_.out_width; }

  /// The operands of the weight in this place of the kernel, in the first `pairs` pairs of images out of `of`.
  const TapPair* begin(int64_t place) const { return tap_pairs_.data() + ends_[place]; }
  int64_t count(int64_t place, int64_t pairs, int64_t of) const {
    return (ends_[place + 1] - ends_[place]) / of * pairs;
  }

 private:
  void add_tap_pairs(int64_t row, int64_t column, int64_t pair, int64_t in_channels) {
    for (int64_t y = 0; y < rows_; ++y) {
      const int64_t in_y = (first_row_ + y) * shape_.stride + row - shape_.padding;
      if (in_y < 0 || in_y >= shape_.in_height) continue;
      for (int64_t x = 0; x < shape_.out_width; ++x) {
        const int64_t in_x = x * shape_.stride + column - shape_.padding;
        if (in_x < 0 || in_x >= shape_.in_width) continue;
        tap_pairs_.push_back({pair * in_values_ + ((in_y - first_in_row_) * shape_.in_width + in_x) * in_channels * 2,
                              pair * out_values_ + (y * shape_.out_width + x) * shape_.out_channels * 2});
      }
    }
  }

  ConvShape2d shape_;
  int64_t first_row_, rows_, first_in_row_, in_rows_, in_values_, out_values_;
  std::vector<TapPair> tap_pairs_;
  std::vector<int64_t> ends_;
};

/// `first` and `second` in turn, value by value: what a pair of bfloat16 is multiplied as. `count` a multiple of
/// kConvLanes.
STOKER_BFLOAT16_INLINE void interleave(const uint16_t* first, const uint16_t* second, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; i += kConvLanes) {
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(first + i)));
    const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(second + i)));
    _mm512_storeu_si512(to + 2 * i, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
  }
}

/// Interleaves `positions` positions: `channels` of every `stride` values.
STOKER_BFLOAT16 void interleave(const uint16_t* first, const uint16_t* second, int64_t positions, int64_t channels,
                                int64_t stride, uint16_t* to) {
  for (int64_t p = 0; p < positions; ++p, to += 2 * channels)
    interleave(first + p * stride, second + p * stride, channels, to);
}

/// sums[i, o] += x[i] * dy[o] over the meetings, for `rows` in channels and `vectors` times kConvLanes out channels.
template <int rows, int vectors>
STOKER_BFLOAT16_INLINE void add_tile(const uint16_t* x, const uint16_t* dy, const TapPair* meetings, int64_t count,
                                     float* sums, int64_t out_channels) {
  __m512 tile[rows][vectors];
  for (int i = 0; i < rows; ++i) {
    for (int v = 0; v < vectors; ++v) tile[i][v] = _mm512_loadu_ps(sums + i * out_channels + v * kConvLanes);
  }
  for (int64_t k = 0; k < count; ++k) {
    const uint16_t *const in = x + meetings[k].in, *const out = dy + meetings[k].out;
    __m512bh gradients[vectors];
    for (int v = 0; v < vectors; ++v) gradients[v] = (__m512bh)_mm512_loadu_si512(out + v * 2 * kConvLanes);
    for (int i = 0; i < rows; ++i) {
      int32_t pair = 0;
      std::memcpy(&pair, in + 2 * i, sizeof pair);
      const auto pairs = (__m512bh)_mm512_set1_epi32(pair);
      for (int v = 0; v < vectors; ++v) tile[i][v] = _mm512_dpbf16_ps(tile[i][v], pairs, gradients[v]);
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(sums + i * out_channels + v * kConvLanes, tile[i][v]);
  }
}

template <int rows, int vectors>
STOKER_BFLOAT16 void add_tiles(const uint16_t* x, const uint16_t* dy, const TapPair* meetings, int64_t count,
                               int64_t in_channels, float* sums, int64_t out_channels) {
  for (int64_t i = 0; i < in_channels; i += rows)
    add_tile<rows, vectors>(x + 2 * i, dy, meetings, count, sums + i * out_channels, out_channels);
}

/// All channels for one place of the kernel; 16 registers hold sums whatever the tile's sides.
STOKER_BFLOAT16 void add_place(const uint16_t* x, const uint16_t* dy, const TapPair* meetings, int64_t count,
                               int64_t in_channels, float* sums, int64_t out_channels) {
  for (int64_t o = 0; o < out_channels;) {
    const int64_t left = (out_channels - o) / kConvLanes;
    const int64_t vectors = left >= 4 ? 4 : left >= 2 ? 2 : 1;
    const auto add = vectors == 4 ? add_tiles<4, 4> : vectors == 2 ? add_tiles<8, 2> : add_tiles<16, 1>;
    add(x, dy + 2 * o, meetings, count, in_channels, sums + o, out_channels);
    o += vectors * kConvLanes;
  }
}

/// The part of the gradient that belongs to some of the input's channels.
class ChannelsGradient {
 public:
  ChannelsGradient(const ConvShape2d& shape, const uint16_t* x, const uint16_t* dy, int64_t first_channel,
                   int64_t channels)
      : shape_(shape),
        in_image_(shape.in_height * shape.in_width * shape.in_channels),
        out_image_(shape.out_height * shape.out_width * shape.out_channels),
        pairs_each_(std::max<int64_t>(1, kPositions / (shape.out_height * shape.out_width))),
        first_channel_(first_channel),
        channels_(channels),
        x_(x),
        dy_(dy),
        zeros_(shape.images % 2 ? std::max(in_image_, out_image_) : 0),
        sums_(shape.kernel * shape.kernel * channels * shape.out_channels) {
    const int64_t rows_each = std::clamp<int64_t>(kPositions / shape.out_width, 1, shape.out_height);
    for (int64_t row = 0; row < shape.out_height; row += rows_each) {
      const RowBlock& block =
          blocks_.emplace_back(shape, channels, row, std::min(rows_each, shape.out_height - row), pairs_each_);
      x_pairs_.resize(std::max(x_pairs_.size(), static_cast<size_t>(pairs_each_ * block.in_values())));
      dy_pairs_.resize(std::max(dy_pairs_.size(), static_cast<size_t>(pairs_each_ * block.out_values())));
    }
  }

  void compute() {
    for (int64_t image = 0; image < shape_.images; image += 2 * pairs_each_) {
      const int64_t pairs = std::min(pairs_each_, (shape_.images - image + 1) / 2);
      for (const RowBlock& block : blocks_) {
        for (int64_t pair = 0; pair < pairs; ++pair) pair_up(block, image + 2 * pair, pair);
        for (int64_t place = 0; place < shape_.kernel * shape_.kernel; ++place) {
          add_place(x_pairs_.data(), dy_pairs_.data(), block.begin(place), block.count(place, pairs, pairs_each_),
                    channels_, sums_of(place), shape_.out_channels);
        }
      }
    }
  }

  void write(const WeightStrides& strides, float* gradient) {
    for (int64_t place = 0; place < shape_.kernel * shape_.kernel; ++place) {
      const float* const from = sums_of(place);
      float* const to = gradient + place / shape_.kernel * strides.row + place % shape_.kernel * strides.column +
                        first_channel_ * strides.in_channel;
      for (int64_t o = 0; o < shape_.out_channels; ++o) {
        for (int64_t i = 0; i < channels_; ++i)
          to[o * strides.out_channel + i * strides.in_channel] = from[i * shape_.out_channels + o];
      }
    }
  }

 private:
  /// [in channels of this part, out channels]
  float* sums_of(int64_t place) { return sums_.data() + place * channels_ * shape_.out_channels; }

  /// The block's rows of images `first` and `first + 1`; an odd last image is paired with zeros on both sides.
  void pair_up(const RowBlock& block, int64_t first, int64_t pair) {
    const bool is_alone = first + 1 == shape_.images;
    const int64_t in = block.first_in_position() * shape_.in_channels + first_channel_;
    const int64_t out = block.first_out_position() * shape_.out_channels;
    const uint16_t *const x = x_ + first * in_image_, *const dy = dy_ + first * out_image_;
    interleave(x + in, (is_alone ? zeros_.data() : x + in_image_) + in, block.in_positions(), channels_,
               shape_.in_channels, x_pairs_.data() + pair * block.in_values());
    interleave(dy + out, (is_alone ? zeros_.data() : dy + out_image_) + out, block.out_positions(), shape_.out_channels,
               shape_.out_channels, dy_pairs_.data() + pair * block.out_values());
  }

  const ConvShape2d shape_;
  const int64_t in_image_, out_image_, pairs_each_, first_channel_, channels_;
  const uint16_t *const x_, *const dy_;
  const std::vector<uint16_t> zeros_;
  std::vector<RowBlock> blocks_;
  std::vector<uint16_t> x_pairs_, dy_pairs_;
  std::vector<float> sums_;  ///< for each place of the kernel
};

}  // namespace

bool has_conv_weight_gradient() {
  static const bool has = __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_supports("amx-bf16");
  return has;
}

void conv_weight_gradient(const ConvShape2d& shape, const uint16_t* x, const uint16_t* dy, const WeightStrides& strides,
                          float* gradient, ParallelFor parallel_for) {
  parallel_for(shape.in_channels / kConvLanes, /*grain=*/1, [&](int64_t begin, int64_t end) {
    ChannelsGradient part(shape, x, dy, begin * kConvLanes, (end - begin) * kConvLanes);
    part.compute();
    part.write(strides, gradient);
  });
}

#else

bool has_conv_weight_gradient() { return false; }
void conv_weight_gradient(const ConvShape2d&, const uint16_t*, const uint16_t*, const WeightStrides&, float*,
                          ParallelFor) {
  throw core::Error(core::ErrorKind::bug, "this build has no kernel for the gradients of convolutions");
}

#endif

}  // namespace stoker::kernels
