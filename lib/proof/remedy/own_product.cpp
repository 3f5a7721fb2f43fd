// SPDX-License-Identifier: Apache-2.0
#include "proof/remedy/own_product.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

namespace stoker::proof {
namespace {

constexpr int64_t kRows = 4;      // whose sums are held at a time
constexpr int64_t kColumns = 64;  // of them, too: 4 x 64 floats stay in registers and the first cache

/// Rows [begin, end) of `result`; all rows lie one behind another in memory.
void product_rows(const float* left, const float* right, float* result, int64_t terms, int64_t columns, int64_t begin,
                  int64_t end) {
  for (int64_t row = begin; row < end; row += kRows) {
    const int64_t rows = std::min(kRows, end - row);
    for (int64_t column = 0; column < columns; column += kColumns) {
      const int64_t width = std::min(kColumns, columns - column);
      float sums[kRows][kColumns] = {};
      for (int64_t k = 0; k < terms; ++k) {
        const float* const factors = right + k * columns + column;
        for (int64_t i = 0; i < rows; ++i) {
          const float factor = left[(row + i) * terms + k];
          for (int64_t j = 0; j < width; ++j) sums[i][j] += factor * factors[j];
        }
      }
      for (int64_t i = 0; i < rows; ++i) std::copy_n(sums[i], width, result + (row + i) * columns + column);
    }
  }
}

}  // namespace

at::Tensor own_product(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor a = left.to(at::kFloat).contiguous(), b = right.to(at::kFloat).contiguous();
  const bool is_batch = left.dim() == 3;
  const int64_t batch = is_batch ? left.size(0) : 1, rows = left.size(-2), terms = left.size(-1),
                columns = right.size(-1);
  at::Tensor result =
      is_batch ? at::empty({batch, rows, columns}, a.options()) : at::empty({rows, columns}, a.options());
  const float *const a_data = a.data_ptr<float>(), *const b_data = b.data_ptr<float>();
  float* const data = result.data_ptr<float>();
  const int64_t blocks = (rows + kRows - 1) / kRows;
  at::parallel_for(0, batch * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t matrix = i / blocks, row = i % blocks * kRows;
      product_rows(a_data + matrix * rows * terms, b_data + matrix * terms * columns, data + matrix * rows * columns,
                   terms, columns, row, std::min(row + kRows, rows));
    }
  });
  return result.to(left.scalar_type());
}

}  // namespace stoker::proof
