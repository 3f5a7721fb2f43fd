// SPDX-License-Identifier: Apache-2.0
// Which elements are compared, and what counts as wrong.
#include "proof/rules/comparison.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <set>
#include <utility>

namespace stoker::proof {
namespace {

TEST(SampledIndicesTest, HoldEachIndexOfEachDimensionAndMoreAtTheBorders) {
  std::mt19937_64 random(1);
  const std::vector<int64_t> sizes = {5, 37, 14, 9};
  const auto indices = sampled_indices(sizes, /*repeats=*/2, /*first_spatial=*/2, random);
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    std::multiset<int64_t> seen;
    for (const auto& index : indices) seen.insert(index[dim]);
    for (int64_t i = 0; i < sizes[dim]; ++i) EXPECT_GE(seen.count(i), 2U) << dim << " " << i;
  }
  std::multiset<int64_t> rows;
  for (const auto& index : indices) rows.insert(index[2]);
  EXPECT_GE(rows.count(0), 8U);
  EXPECT_GE(rows.count(13), 8U);
}

Comparison compared(const at::Tensor& result, double factor) {
  Comparison comparison(/*seed=*/1);
  const at::Tensor exact = result.to(at::kDouble);
  comparison.compare("output", result * factor, 1, [&](const int64_t* index) {
    const double value = exact[index[0]][index[1]].item<double>();
    return Expected{value, value * value, 1};
  });
  return comparison;
}

TEST(ComparisonTest, RoundingIsRightAndFourTimesAsMuchIsWrong) {
  const at::Tensor numbers = torch::rand({40, 30}) + 0.5;
  EXPECT_TRUE(compared(numbers, 1).is_right());
  EXPECT_FALSE(compared(numbers, 1 + 0x1p-10).is_right());
  const at::Tensor rounded = numbers.to(at::kBFloat16);
  EXPECT_TRUE(compared(rounded, 1).is_right());
  EXPECT_FALSE(compared(rounded, 1 + 0x1p-6).is_right());
}

TEST(ComparisonTest, WhatIsNoNumberIsWrong) {
  at::Tensor numbers = torch::rand({4, 3});
  const at::Tensor exact = numbers.to(at::kDouble);
  numbers[2][1] = std::nan("");
  Comparison comparison(/*seed=*/1, /*compares_all=*/true);
  comparison.compare("output", numbers, 1, [&](const int64_t* index) {
    return Expected{exact[index[0]][index[1]].item<double>(), 1, 1};
  });
  ASSERT_EQ(comparison.results().size(), 1U);
  EXPECT_EQ(comparison.results()[0].elements, 12);
  EXPECT_EQ(comparison.results()[0].wrong, 1);
  EXPECT_EQ(comparison.results()[0].text(), "output: 1 of 12 elements wrong, not a finite number, at (2, 1)");
}

TEST(ComparisonTest, NanIsFoundWhereTheSampleDoesNotLook) {
  for (const auto& [row, column] : {std::pair(0, 0), std::pair(123, 45), std::pair(399, 299)}) {
    at::Tensor numbers = torch::rand({400, 300});
    numbers[row][column] = std::nan("");
    Comparison comparison(/*seed=*/1);
    const auto right = numbers.to(at::kDouble).nan_to_num(0.5);
    comparison.compare("output", numbers, 1, [&](const int64_t* index) {
      return Expected{right[index[0]][index[1]].item<double>(), 1, 1};
    });
    EXPECT_GE(comparison.results()[0].wrong, 1) << row;
    EXPECT_LE(comparison.results()[0].wrong, 2) << row << ": in the sample, too";
  }
}

}  // namespace
}  // namespace stoker::proof
