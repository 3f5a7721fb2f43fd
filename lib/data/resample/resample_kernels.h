// SPDX-License-Identifier: Apache-2.0
// The inner loops of resizing: plain C++ and AVX2 with the same bits. Knows nothing of windows or images.
#pragma once

#include <cstdint>

#include "data/resample/resample.h"

namespace stoker::data {

/// One row of `channels` (1 or 3) through the taps of the columns.
void narrow_row(const uint8_t* in, int channels, const AxisWeights& columns, int outputs, uint8_t* out);
/// `out`[i] = the weighted sum of byte i of `count` rows that lie `stride` bytes apart.
void merge_rows(const uint8_t* in, int64_t stride, const int32_t* weights, int count, int64_t bytes, uint8_t* out);

#if defined(__x86_64__)
/// Bytes that are read from the first tap of an output on.
inline int bytes_of_pairs(int pairs) { return (pairs - 1) / 2 * 12 + 16; }
/// Four rows of 3 channels, `stride` bytes apart, to four rows `out_stride` bytes apart. Writes one byte
/// beyond the last output of each.
void narrow_four_rows_avx2(const uint8_t* in, int64_t stride, const PairedWeights& columns, int outputs, uint8_t* out,
                           int64_t out_stride);
void merge_rows_avx2(const uint8_t* in, int64_t stride, const int32_t* weights, int count, int64_t bytes, uint8_t* out);
#endif

/// True when this machine runs the AVX2 loops.
bool has_avx2_kernels();

}  // namespace stoker::data
