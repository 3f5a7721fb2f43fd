// SPDX-License-Identifier: Apache-2.0
#include "model/buffers.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

namespace stoker::model {
namespace {

/// Where the next buffer begins: at a cache line, as tensors of their own do.
int64_t padded(int64_t numbers, const torch::Tensor& buffer) {
  const int64_t line = std::max<int64_t>(1, 64 / static_cast<int64_t>(buffer.element_size()));
  return (numbers + line - 1) / line * line;
}

/// Buffers that can share a tensor, or do.
struct Row {
  std::vector<torch::Tensor> buffers;
  int64_t numbers = 0;  ///< from the start of the first to the end of the last
};

bool can_join(const torch::Tensor& a, const torch::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

/// Whether `buffer` is where join_buffers() puts what follows the row.
bool follows(const Row& row, const torch::Tensor& buffer) {
  const torch::Tensor& first = row.buffers[0];
  return buffer.is_contiguous() && first.is_alias_of(buffer) && can_join(first, buffer) &&
         buffer.storage_offset() == first.storage_offset() + padded(row.numbers, first);
}

}  // namespace

void join_buffers(torch::nn::Module& module) {
  const torch::NoGradGuard no_gradients;
  std::vector<Row> rows;
  for (const torch::Tensor& buffer : module.buffers()) {
    if (!buffer.is_contiguous()) continue;
    const auto same = [&buffer](const Row& row) { return can_join(row.buffers[0], buffer); };
    const auto found = std::find_if(rows.begin(), rows.end(), same);
    Row& row = found == rows.end() ? rows.emplace_back() : *found;
    row.numbers = padded(row.numbers, buffer) + buffer.numel();
    row.buffers.push_back(buffer);
  }
  for (const Row& row : rows) {
    const torch::Tensor memory = at::zeros({row.numbers}, row.buffers[0].options());
    int64_t begin = 0;
    for (torch::Tensor buffer : row.buffers) {
      const torch::Tensor place = memory.narrow(0, padded(begin, buffer), buffer.numel()).view(buffer.sizes());
      place.copy_(buffer);
      begin = padded(begin, buffer) + buffer.numel();
      buffer.set_data(place);
    }
  }
}

std::vector<torch::Tensor> joined_buffers(const torch::nn::Module& module) {
  std::vector<Row> rows;
  for (const torch::Tensor& buffer : module.buffers()) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return follows(row, buffer); });
    Row& row = found == rows.end() ? rows.emplace_back() : *found;
    row.numbers = padded(row.numbers, buffer) + buffer.numel();
    row.buffers.push_back(buffer);
  }
  std::vector<torch::Tensor> joined;
  for (const Row& row : rows) {
    const torch::Tensor first = row.buffers[0].detach();
    joined.push_back(row.buffers.size() == 1 ? first : first.as_strided({row.numbers}, {1}, first.storage_offset()));
  }
  return joined;
}

}  // namespace stoker::model
