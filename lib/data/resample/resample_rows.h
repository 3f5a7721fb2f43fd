// SPDX-License-Identifier: Apache-2.0
// The inner loops of resizing in plain C++. kernels/resample_rows_avx2 has the same bits.
#pragma once

#include <cstdint>

#include "data/resample/resample.h"

namespace stoker::data {

/// One row of `channels` (1 or 3) through the taps of the columns.
void narrow_row(const uint8_t* in, int channels, const AxisWeights& columns, int outputs, uint8_t* out);
/// `out`[i] = the weighted sum of byte i of `count` rows that lie `stride` bytes apart.
void merge_rows(const uint8_t* in, int64_t stride, const int32_t* weights, int count, int64_t bytes, uint8_t* out);

}  // namespace stoker::data
