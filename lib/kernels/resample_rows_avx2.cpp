// SPDX-License-Identifier: Apache-2.0
#include "kernels/resample_rows_avx2.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu.h"

namespace stoker::kernels {

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

namespace {

constexpr int32_t kHalfWeight = 1 << (kWeightBits - 1);

/// Sixteen bytes of each of two rows, one row in each half.
__attribute__((target("avx2"))) inline __m256i two_rows(const uint8_t* upper, const uint8_t* lower) {
  const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(upper));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(first),
                                 _mm_loadu_si128(reinterpret_cast<const __m128i*>(lower)), 1);
}

/// Four rows through `kPairs` pairs of taps; 0: as many as there are.
template <int kPairs>
__attribute__((target("avx2"))) void narrow_four_rows(const uint8_t* in, int64_t stride, const PairedTaps& columns,
                                                      int outputs, uint8_t* out, int64_t out_stride) {
  // From 16 bytes of RGB: the reds of two pixels that lie side by side as 16-bit numbers, their greens, their
  // blues.
  const __m256i first_two = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                             0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
  const __m256i next_two = _mm256_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,  //
                                            6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const int pairs = kPairs > 0 ? kPairs : columns.pairs;
  const int32_t* weights = columns.high_and_low;
  for (int i = 0; i < outputs; ++i, weights += 2 * pairs, out += 3) {
    const uint8_t* const pixels = in + int64_t{columns.first[i]} * 3;
    __m256i high_above = _mm256_setzero_si256(), high_below = high_above;
    __m256i low_above = _mm256_set1_epi32(kHalfWeight), low_below = low_above;
    __m256i above = high_above, below = high_above;
    for (int k = 0; k < pairs; ++k) {
      if (k % 2 == 0) {
        const uint8_t* const four = pixels + 6 * k;
        above = two_rows(four, four + stride);
        below = two_rows(four + 2 * stride, four + 3 * stride);
      }
      const __m256i order = k % 2 == 0 ? first_two : next_two;
      const __m256i high = _mm256_set1_epi32(weights[2 * k]), low = _mm256_set1_epi32(weights[2 * k + 1]);
      const __m256i above_pair = _mm256_shuffle_epi8(above, order), below_pair = _mm256_shuffle_epi8(below, order);
      high_above = _mm256_add_epi32(high_above, _mm256_madd_epi16(above_pair, high));
      low_above = _mm256_add_epi32(low_above, _mm256_madd_epi16(above_pair, low));
      high_below = _mm256_add_epi32(high_below, _mm256_madd_epi16(below_pair, high));
      low_below = _mm256_add_epi32(low_below, _mm256_madd_epi16(below_pair, low));
    }
    constexpr int kLow = kLowWeightBits;
    const __m256i sums_above = _mm256_add_epi32(_mm256_slli_epi32(high_above, kLow), low_above);
    const __m256i sums_below = _mm256_add_epi32(_mm256_slli_epi32(high_below, kLow), low_below);
    // Packing saturates; each half holds a row of the upper two and one of the lower two.
    const __m256i words =
        _mm256_packs_epi32(_mm256_srai_epi32(sums_above, kWeightBits), _mm256_srai_epi32(sums_below, kWeightBits));
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const int64_t even = _mm256_extract_epi64(bytes, 0), odd = _mm256_extract_epi64(bytes, 2);
    std::memcpy(out, &even, 4);
    std::memcpy(out + out_stride, &odd, 4);
    const auto third = static_cast<int32_t>(even >> 32), fourth = static_cast<int32_t>(odd >> 32);
    std::memcpy(out + 2 * out_stride, &third, 4);
    std::memcpy(out + 3 * out_stride, &fourth, 4);
  }
}

}  // namespace

void narrow_four_rows_avx2(const uint8_t* in, int64_t stride, const PairedTaps& columns, int outputs, uint8_t* out,
                           int64_t out_stride) {
  switch (columns.pairs) {
    case 1: return narrow_four_rows<1>(in, stride, columns, outputs, out, out_stride);
    case 2: return narrow_four_rows<2>(in, stride, columns, outputs, out, out_stride);
    case 3: return narrow_four_rows<3>(in, stride, columns, outputs, out, out_stride);
    default: return narrow_four_rows<0>(in, stride, columns, outputs, out, out_stride);
  }
}

__attribute__((target("avx2"))) void merge_rows_avx2(const uint8_t* in, int64_t stride, const int32_t* weights,
                                                     int count, int64_t bytes, uint8_t* out) {
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
  for (; at < bytes; ++at) {
    int32_t sum = kHalfWeight;
    for (int t = 0; t < count; ++t) sum += in[t * stride + at] * weights[t];
    out[at] = static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
  }
}

}  // namespace stoker::kernels
