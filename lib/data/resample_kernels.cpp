// SPDX-License-Identifier: Apache-2.0
#include "data/resample_kernels.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::data {
namespace {

constexpr int32_t kHalfWeight = 1 << (kWeightBits - 1);

uint8_t clipped_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

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

void merge_rows(const uint8_t* in, int64_t stride, const int32_t* weights, int count, int64_t bytes,
                uint8_t* out) {
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

#if defined(__x86_64__)

bool has_avx2_kernels() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

namespace {

/// Two pixels of 3 channels and a byte that does not matter, as eight numbers.
__attribute__((target("avx2"))) inline __m256i two_pixels(const uint8_t* upper, const uint8_t* lower) {
  int32_t first, second;
  std::memcpy(&first, upper, 4);
  std::memcpy(&second, lower, 4);
  return _mm256_cvtepu8_epi32(_mm_insert_epi32(_mm_cvtsi32_si128(first), second, 1));
}

/// Sums to bytes: the first four to `upper`, the others to `lower`. Packing saturates.
__attribute__((target("avx2"))) inline void store_two(__m256i sums, uint8_t* upper, uint8_t* lower) {
  const __m256i values = _mm256_srai_epi32(sums, kWeightBits);
  const __m256i words = _mm256_packs_epi32(values, values);
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const int first = _mm256_extract_epi32(bytes, 0), second = _mm256_extract_epi32(bytes, 4);
  std::memcpy(upper, &first, 4);
  std::memcpy(lower, &second, 4);
}

}  // namespace

__attribute__((target("avx2"))) void narrow_four_rows_avx2(const uint8_t* in, int64_t stride,
                                                           const AxisWeights& columns, int outputs,
                                                           uint8_t* out, int64_t out_stride) {
  const int32_t* weights = columns.weights.data();
  for (int i = 0; i < outputs; ++i, weights += columns.stride, out += 3) {
    const uint8_t* pixel = in + int64_t{columns.first[static_cast<size_t>(i)]} * 3;
    __m256i upper = _mm256_set1_epi32(kHalfWeight), lower = upper;
    const int count = columns.count[static_cast<size_t>(i)];
    for (int t = 0; t < count; ++t, pixel += 3) {
      const __m256i weight = _mm256_set1_epi32(weights[t]);
      upper = _mm256_add_epi32(upper, _mm256_mullo_epi32(two_pixels(pixel, pixel + stride), weight));
      lower = _mm256_add_epi32(
          lower, _mm256_mullo_epi32(two_pixels(pixel + 2 * stride, pixel + 3 * stride), weight));
    }
    store_two(upper, out, out + out_stride);
    store_two(lower, out + 2 * out_stride, out + 3 * out_stride);
  }
}

__attribute__((target("avx2"))) void merge_rows_avx2(const uint8_t* in, int64_t stride,
                                                     const int32_t* weights, int count, int64_t bytes,
                                                     uint8_t* out) {
  constexpr int64_t kBlock = 32;
  const __m256i half = _mm256_set1_epi32(kHalfWeight);
  // Packing works within halves of a register: this puts the four groups of four back in order.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  int64_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) {
    __m256i sums[4] = {half, half, half, half};
    for (int t = 0; t < count; ++t) {
      const uint8_t* const row = in + t * stride + at;
      const __m256i weight = _mm256_set1_epi32(weights[t]);
      for (int k = 0; k < 4; ++k) {
        const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + 8 * k));
        sums[k] = _mm256_add_epi32(sums[k], _mm256_mullo_epi32(_mm256_cvtepu8_epi32(eight), weight));
      }
    }
    for (__m256i& sum : sums) sum = _mm256_srai_epi32(sum, kWeightBits);
    const __m256i packed =
        _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]), _mm256_packs_epi32(sums[2], sums[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at), _mm256_permutevar8x32_epi32(packed, order));
  }
  if (at < bytes) merge_rows(in + at, stride, weights, count, bytes - at, out + at);
}

#else

bool has_avx2_kernels() {
  return false;
}

#endif

}  // namespace stoker::data
