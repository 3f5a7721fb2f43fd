// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 floats on every CPU, in the widest registers that it has: same order, same bits. Compiled without
// contraction of multiplications and additions, which would differ between them.
#include "kernels/norm_relu_kernels.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu.h"

// Vectors are passed between functions of this file only, all of them inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define STOKER_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define STOKER_WIDEST
#endif
#define STOKER_INLINE inline __attribute__((always_inline))

namespace stoker::kernels {
namespace {

constexpr int64_t kLanes = kNormLanes;
constexpr int64_t kPieceValues = 16384;  // of a tensor: fits the first cache

using Floats = float __attribute__((vector_size(kLanes * 4)));
using Words = uint32_t __attribute__((vector_size(kLanes * 4)));
using Halves = uint16_t __attribute__((vector_size(kLanes * 2)));

STOKER_INLINE Floats load(const float* from) {
  Floats values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

STOKER_INLINE Floats load(const uint16_t* from) {
  Halves bits;
  std::memcpy(&bits, from, sizeof bits);
  return reinterpret_cast<Floats>(__builtin_convertvector(bits, Words) << 16);
}

STOKER_INLINE void store(float* to, Floats values) { std::memcpy(to, &values, sizeof values); }

/// To the nearest bfloat16, ties to even.
STOKER_INLINE void store(uint16_t* to, Floats values) {
  const Words bits = reinterpret_cast<Words>(values);
  const Words rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const Words quiet_nan = Words{} + 0x7FC0U;
  const Halves halves = __builtin_convertvector(values != values ? quiet_nan : rounded, Halves);
  std::memcpy(to, &halves, sizeof halves);
}

/// Rows of one piece, and of the channels a block of lanes.
template <typename T>
STOKER_INLINE void moments_of_piece(const T* x, int64_t rows, int64_t channels, float* mean, float* squares) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    Floats sum{}, spread{};
    for (int64_t r = 0; r < rows; ++r) sum += load(x + r * channels + c);
    const Floats middle = sum / static_cast<float>(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const Floats distance = load(x + r * channels + c) - middle;
      spread += distance * distance;
    }
    store(mean + c, middle);
    store(squares + c, spread);
  }
}

template <typename T, bool has_added>
STOKER_INLINE void scale_piece(const T* x, const T* added, int64_t rows, int64_t channels, const float* scale,
                               const float* shift, T* y) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < channels; c += kLanes) {
      const int64_t i = r * channels + c;
      Floats value = load(x + i) * load(scale + c) + load(shift + c);
      if (has_added) value += load(added + i);
      store(y + i, value <= 0.F ? Floats{} : value);
    }
  }
}

template <typename T>
STOKER_INLINE void sum_gradients_of_piece(const T* dy, const T* y, const T* x, int64_t rows, int64_t channels,
                                          const float* mean, float* gradient, float* grad_times_centered) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    const Floats middle = load(mean + c);
    Floats sum{}, by_distance{};
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * channels + c;
      const Floats g = load(y + i) <= 0.F ? Floats{} : load(dy + i);
      sum += g;
      by_distance += g * (load(x + i) - middle);
    }
    store(gradient + c, sum);
    store(grad_times_centered + c, by_distance);
  }
}

template <typename T, bool has_added>
STOKER_INLINE void gradients_of_piece(const T* dy, const T* y, const T* x, int64_t rows, int64_t channels,
                                      const float* mean, const float* a, const float* b, const float* d, T* dx,
                                      T* added_gradient) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < channels; c += kLanes) {
      const int64_t i = r * channels + c;
      const Floats g = load(y + i) <= 0.F ? Floats{} : load(dy + i);
      store(dx + i, load(a + c) * g + load(b + c) * (load(x + i) - load(mean + c)) + load(d + c));
      if (has_added) store(added_gradient + i, g);
    }
  }
}

// One function per type, in the widest registers of this machine: a template cannot have clones.
STOKER_WIDEST void moments(const float* x, int64_t rows, int64_t channels, float* mean, float* squares) {
  moments_of_piece(x, rows, channels, mean, squares);
}
STOKER_WIDEST void moments(const uint16_t* x, int64_t rows, int64_t channels, float* mean, float* squares) {
  moments_of_piece(x, rows, channels, mean, squares);
}
STOKER_WIDEST void scale(const float* x, const float* added, int64_t rows, int64_t channels, const float* by,
                         const float* shift, float* y) {
  if (added) return scale_piece<float, true>(x, added, rows, channels, by, shift, y);
  scale_piece<float, false>(x, added, rows, channels, by, shift, y);
}
STOKER_WIDEST void scale(const uint16_t* x, const uint16_t* added, int64_t rows, int64_t channels, const float* by,
                         const float* shift, uint16_t* y) {
  if (added) return scale_piece<uint16_t, true>(x, added, rows, channels, by, shift, y);
  scale_piece<uint16_t, false>(x, added, rows, channels, by, shift, y);
}
STOKER_WIDEST void sum_gradients(const float* dy, const float* y, const float* x, int64_t rows, int64_t channels,
                                 const float* mean, float* gradient, float* grad_times_centered) {
  sum_gradients_of_piece(dy, y, x, rows, channels, mean, gradient, grad_times_centered);
}
STOKER_WIDEST void sum_gradients(const uint16_t* dy, const uint16_t* y, const uint16_t* x, int64_t rows,
                                 int64_t channels, const float* mean, float* gradient, float* grad_times_centered) {
  sum_gradients_of_piece(dy, y, x, rows, channels, mean, gradient, grad_times_centered);
}
STOKER_WIDEST void gradients(const float* dy, const float* y, const float* x, int64_t rows, int64_t channels,
                             const float* mean, const float* a, const float* b, const float* d, float* dx,
                             float* added_gradient) {
  if (added_gradient)
    return gradients_of_piece<float, true>(dy, y, x, rows, channels, mean, a, b, d, dx, added_gradient);
  gradients_of_piece<float, false>(dy, y, x, rows, channels, mean, a, b, d, dx, added_gradient);
}
STOKER_WIDEST void gradients(const uint16_t* dy, const uint16_t* y, const uint16_t* x, int64_t rows, int64_t channels,
                             const float* mean, const float* a, const float* b, const float* d, uint16_t* dx,
                             uint16_t* added_gradient) {
  if (added_gradient)
    return gradients_of_piece<uint16_t, true>(dy, y, x, rows, channels, mean, a, b, d, dx, added_gradient);
  gradients_of_piece<uint16_t, false>(dy, y, x, rows, channels, mean, a, b, d, dx, added_gradient);
}

/// Pieces of whole rows.
struct Pieces {
  Pieces(NormShape of, ParallelFor by)
      : shape(of),
        parallel_for(by),
        rows_each(std::max<int64_t>(1, kPieceValues / of.channels)),
        count((of.rows + rows_each - 1) / rows_each) {}
  int64_t rows_of(int64_t piece) const { return std::min(rows_each, shape.rows - piece * rows_each); }
  int64_t begin_of(int64_t piece) const { return piece * rows_each * shape.channels; }  ///< value

  /// `work(piece)`, on the threads of an operation; one piece is too little for a second thread.
  template <typename Work>
  void for_each(const Work& work) const {
    parallel_for(count, /*grain=*/2, [&work](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) work(piece);
    });
  }

  const NormShape shape;
  const ParallelFor parallel_for;
  const int64_t rows_each, count;
};

/// One value per channel, for each piece.
std::vector<float> values_of(const Pieces& pieces) {
  return std::vector<float>(static_cast<size_t>(pieces.count * pieces.shape.channels));
}

std::vector<double> summed(const Pieces& pieces, const std::vector<float>& values) {
  const auto channels = static_cast<size_t>(pieces.shape.channels);
  std::vector<double> sums(channels, 0.0);
  for (size_t i = 0; i < values.size(); ++i) sums[i % channels] += values[i];
  return sums;
}

}  // namespace

bool has_norm_relu() { return true; }

template <typename T>
ChannelMoments channel_moments(const T* x, NormShape shape, ParallelFor parallel_for) {
  const Pieces pieces(shape, parallel_for);
  std::vector<float> means = values_of(pieces), squares = values_of(pieces);
  pieces.for_each([&](int64_t piece) {
    moments(x + pieces.begin_of(piece), pieces.rows_of(piece), shape.channels, &means[piece * shape.channels],
            &squares[piece * shape.channels]);
  });
  const auto rows = static_cast<double>(shape.rows);
  ChannelMoments all{std::vector<double>(shape.channels, 0.0), summed(pieces, squares)};
  for (int64_t piece = 0; piece < pieces.count; ++piece) {
    for (int64_t c = 0; c < shape.channels; ++c)
      all.mean[c] += means[piece * shape.channels + c] * (static_cast<double>(pieces.rows_of(piece)) / rows);
  }
  for (int64_t piece = 0; piece < pieces.count; ++piece) {
    for (int64_t c = 0; c < shape.channels; ++c) {
      const double distance = means[piece * shape.channels + c] - all.mean[c];
      all.variance[c] += distance * distance * static_cast<double>(pieces.rows_of(piece));
    }
  }
  for (double& variance : all.variance) variance /= rows;
  return all;
}

template <typename T>
void scale_add_relu(const T* x, const T* added, NormShape shape, const float* by, const float* shift, T* y,
                    ParallelFor parallel_for) {
  const Pieces pieces(shape, parallel_for);
  pieces.for_each([&](int64_t piece) {
    const int64_t i = pieces.begin_of(piece);
    scale(x + i, added ? added + i : nullptr, pieces.rows_of(piece), shape.channels, by, shift, y + i);
  });
}

template <typename T>
ChannelSums relu_gradient_sums(const T* dy, const T* y, const T* x, NormShape shape, const float* mean,
                               ParallelFor parallel_for) {
  const Pieces pieces(shape, parallel_for);
  std::vector<float> gradient = values_of(pieces), grad_times_centered = values_of(pieces);
  pieces.for_each([&](int64_t piece) {
    const int64_t i = pieces.begin_of(piece), c = piece * shape.channels;
    sum_gradients(dy + i, y + i, x + i, pieces.rows_of(piece), shape.channels, mean, &gradient[c],
                  &grad_times_centered[c]);
  });
  return {summed(pieces, gradient), summed(pieces, grad_times_centered)};
}

template <typename T>
void norm_relu_gradients(const T* dy, const T* y, const T* x, NormShape shape, const float* mean, const float* a,
                         const float* b, const float* d, T* dx, T* added_gradient, ParallelFor parallel_for) {
  const Pieces pieces(shape, parallel_for);
  pieces.for_each([&](int64_t piece) {
    const int64_t i = pieces.begin_of(piece);
    gradients(dy + i, y + i, x + i, pieces.rows_of(piece), shape.channels, mean, a, b, d, dx + i,
              added_gradient ? added_gradient + i : nullptr);
  });
}

#define STOKER_INSTANTIATE(T)                                                                                          \
  template ChannelMoments channel_moments(const T*, NormShape, ParallelFor);                                           \
  template void scale_add_relu(const T*, const T*, NormShape, const float*, const float*, T*, ParallelFor);            \
  template ChannelSums relu_gradient_sums(const T*, const T*, const T*, NormShape, const float*, ParallelFor);         \
  template void norm_relu_gradients(const T*, const T*, const T*, NormShape, const float*, const float*, const float*, \
                                    const float*, T*, T*, ParallelFor);
STOKER_INSTANTIATE(float)
STOKER_INSTANTIATE(uint16_t)
#undef STOKER_INSTANTIATE

}  // namespace stoker::kernels
