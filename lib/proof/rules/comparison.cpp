// SPDX-License-Identifier: Apache-2.0
#include "proof/rules/comparison.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/format.h"

namespace stoker::proof {
namespace {

constexpr double kFloatUnit = 0x1p-24;  // half the distance of neighbours, relative: float32 rounds by this at most
constexpr double kOrdersOfAdding = 8;   // times the usual error of a sum in float32
constexpr int64_t kRepeats = 2;         // of each channel, image, row and column
constexpr int64_t kBorders = 8;         // elements more at each edge
constexpr double kCheapTerms = 1e6, kDearTerms = 8e6;  // total terms of sums that are quick; that take long
constexpr int64_t kMostElements = 4096;

double smallest(at::ScalarType type) { return type == at::kHalf ? 0x1p-23 : 1e-36; }

/// The `number`th of all indices.
std::vector<int64_t> index_of(int64_t number, at::IntArrayRef sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 0; number /= sizes[dim]) index[dim] = number % sizes[dim];
  return index;
}

std::vector<int64_t> permutation(int64_t size, std::mt19937_64& random) {
  std::vector<int64_t> numbers(static_cast<size_t>(size));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  std::shuffle(numbers.begin(), numbers.end(), random);
  return numbers;
}

}  // namespace

double rounding(at::ScalarType type) {
  switch (type) {
    case at::kBFloat16: return 1.25 * 0x1p-8;
    case at::kHalf: return 1.25 * 0x1p-11;
    default: return 0x1p-22;
  }
}

std::string Compared::text() const {
  const double off = largest_expected > 0 ? largest_error / largest_expected : std::numeric_limits<double>::infinity();
  const std::string how =
      std::isfinite(off) ? core::format("off by {:.2g}% of the largest value", 100 * off) : "not a finite number";
  return core::format("{}: {} of {} elements wrong, {}, at ({})", what, wrong, elements, how, worst_at);
}

std::vector<std::vector<int64_t>> sampled_indices(at::IntArrayRef sizes, int64_t repeats, int64_t first_spatial,
                                                  std::mt19937_64& random) {
  int64_t count = 1;
  for (const int64_t size : sizes) count = std::max(count, size * repeats);
  std::vector<std::vector<int64_t>> indices(static_cast<size_t>(count), std::vector<int64_t>(sizes.size()));
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] == 0) return {};
    for (int64_t i = 0; i < count;) {  // each index once before any comes twice
      for (const int64_t number : permutation(sizes[dim], random)) {
        if (i < count) indices[static_cast<size_t>(i++)][dim] = number;
      }
    }
  }
  const auto anywhere = [&] {
    std::vector<int64_t> index;
    for (const int64_t size : sizes) index.push_back(std::uniform_int_distribution<int64_t>(0, size - 1)(random));
    return index;
  };
  for (size_t dim = static_cast<size_t>(first_spatial); dim < sizes.size(); ++dim) {
    for (int64_t i = 0; i < 2 * kBorders; ++i) {
      std::vector<int64_t> index = anywhere();
      index[dim] = i % 2 == 0 ? 0 : sizes[dim] - 1;
      indices.push_back(index);
    }
  }
  return indices;
}

namespace {

/// The first of them: no operation that is compared makes NaN of the numbers that it is given.
std::vector<std::vector<int64_t>> indices_of_nan(const at::Tensor& result) {
  constexpr int64_t kMost = 8;
  std::vector<std::vector<int64_t>> indices;
  const at::Tensor are_nan = result.isnan();
  if (!are_nan.any().item<bool>()) return indices;
  const at::Tensor found = are_nan.nonzero().cpu();  // [NaN, dimensions]
  for (int64_t i = 0; i < std::min(kMost, found.size(0)); ++i) {
    const auto* const index = found[i].data_ptr<int64_t>();
    indices.emplace_back(index, index + found.size(1));
  }
  return indices;
}

}  // namespace

void Comparison::compare(const std::string& what, const at::Tensor& result, int64_t terms,
                         const std::function<Expected(const int64_t* index)>& expect, int64_t first_spatial) {
  if (!result.defined() || result.numel() == 0) return;
  if (result.dim() == 0) return compare(what, result.reshape({1}), terms, expect, first_spatial);
  const int64_t largest = *std::max_element(result.sizes().begin(), result.sizes().end());
  const double each = static_cast<double>(std::max<int64_t>(1, terms));
  int64_t repeats = kRepeats;
  if (each * static_cast<double>(largest * kRepeats) > kDearTerms) repeats = 1;
  const auto cheap = static_cast<int64_t>(kCheapTerms / each / static_cast<double>(largest));
  repeats = std::clamp(cheap, repeats, std::max(repeats, kMostElements / largest));
  Compared compared;
  compared.what = what;
  const Numbers numbers(result);
  if (!compares_all_) {
    auto indices = sampled_indices(result.sizes(), repeats, first_spatial, random_);
    for (std::vector<int64_t>& index : indices_of_nan(result)) indices.push_back(std::move(index));
    compare_some(numbers, result.scalar_type(), indices, expect, compared);
  }
  constexpr int64_t kBlock = 1 << 16;  // indices that are held at a time
  for (int64_t begin = 0; compares_all_ && begin < result.numel(); begin += kBlock) {
    std::vector<std::vector<int64_t>> indices;
    for (int64_t i = begin; i < std::min(begin + kBlock, result.numel()); ++i) {
      indices.push_back(index_of(i, result.sizes()));
    }
    compare_some(numbers, result.scalar_type(), indices, expect, compared);
  }
  results_.push_back(std::move(compared));
}

void Comparison::compare_some(const Numbers& numbers, at::ScalarType type,
                              const std::vector<std::vector<int64_t>>& indices,
                              const std::function<Expected(const int64_t* index)>& expect, Compared& compared) {
  std::vector<Expected> expected(indices.size());
  at::parallel_for(0, static_cast<int64_t>(indices.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      expected[static_cast<size_t>(i)] = expect(indices[static_cast<size_t>(i)].data());
  });
  compared.elements += static_cast<int64_t>(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const double value = expected[i].value, got = numbers.at(indices[i].data());
    const double allowed = rounding(type) * (std::abs(value) + expected[i].intermediate) +
                           kOrdersOfAdding * kFloatUnit * std::sqrt((expected[i].terms + 1) * expected[i].squares) +
                           smallest(type) + expected[i].allowed;
    const double error = std::abs(got - value);
    const double ratio = std::isfinite(error) ? error / allowed : std::numeric_limits<double>::infinity();
    compared.largest_expected = std::max(compared.largest_expected, std::abs(value));
    compared.largest_error =
        std::isfinite(error) ? std::max(compared.largest_error, error) : std::numeric_limits<double>::infinity();
    if (!(ratio <= 1)) ++compared.wrong;
    if (ratio > compared.worst_ratio) {
      compared.worst_ratio = ratio;
      compared.worst_at = core::format("{}", fmt::join(indices[i], ", "));
    }
  }
}

bool Comparison::is_right() const {
  return std::all_of(results_.begin(), results_.end(), [](const Compared& compared) { return compared.is_right(); });
}

Numbers::Numbers(const at::Tensor& tensor) : tensor_(tensor.detach().to(at::kCPU, at::kFloat)) {
  data_ = tensor_.data_ptr<float>();
}

}  // namespace stoker::proof
