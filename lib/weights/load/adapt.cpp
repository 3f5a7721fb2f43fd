// SPDX-License-Identifier: Apache-2.0
#include "weights/load/adapt.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/cat.h>

#include <cmath>
#include <vector>

namespace stoker::weights {
namespace {

/// 0 where `count` is no square.
int64_t side_of(int64_t count) {
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(count))));
  return side * side == count ? side : 0;
}

std::vector<int64_t> without_ones(at::IntArrayRef shape) {
  std::vector<int64_t> sides;
  for (const int64_t side : shape) {
    if (side != 1) sides.push_back(side);
  }
  return sides;
}

}  // namespace

bool same_but_for_ones(at::IntArrayRef one, at::IntArrayRef other) { return without_ones(one) == without_ones(other); }

torch::Tensor adapt_input_channels(const torch::Tensor& weight, int64_t channels) {
  const int64_t given = weight.size(1);
  const torch::Tensor exact = weight.to(at::kFloat);
  if (channels == 1) return exact.sum(1, /*keepdim=*/true);
  if (given != 1 && given != 3) return {};
  const int64_t times = (channels + given - 1) / given;
  return exact.repeat({1, times, 1, 1}).slice(1, 0, channels) *
         (static_cast<double>(given) / static_cast<double>(channels));
}

torch::Tensor resample_positions(const torch::Tensor& positions, int64_t tokens) {
  const int64_t from = side_of(positions.size(1) - 1), to = side_of(tokens - 1), width = positions.size(2);
  if (from == 0 || to == 0) return {};
  const torch::Tensor exact = positions.to(at::kFloat);
  const torch::Tensor grid = exact.slice(1, 1).reshape({1, from, from, width}).permute({0, 3, 1, 2});  // [1, E, n, n]
  const torch::Tensor resampled = at::_upsample_bicubic2d_aa(grid, {to, to}, /*align_corners=*/false);
  return at::cat({exact.slice(1, 0, 1), resampled.permute({0, 2, 3, 1}).reshape({1, to * to, width})}, 1);
}

torch::Tensor rescale_norm(const torch::Tensor& weight, const torch::Tensor& variance, double theirs, double ours) {
  const torch::Tensor exact = variance.to(at::kDouble);
  return (weight.to(at::kDouble) * ((exact + ours) / (exact + theirs)).sqrt()).to(at::kFloat);
}

}  // namespace stoker::weights
