// SPDX-License-Identifier: Apache-2.0
#include "engine/digest/tensor_digest.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace stoker::engine {
namespace {

TEST(TensorDigestTest, IsOfValuesAndNotOfHowTheyLieInMemory) {
  const torch::Tensor images = at::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5});
  const torch::Tensor moved = images.contiguous(at::MemoryFormat::ChannelsLast);
  ASSERT_NE(images.strides(), moved.strides());
  EXPECT_EQ(tensor_digest(images), tensor_digest(moved));
}

TEST(TensorDigestTest, DiffersWithOneBitOneTypeOneShapeAndOneName) {
  const torch::Tensor values = at::ones({2, 3}, at::kFloat);
  torch::Tensor other = values.clone();
  other.data_ptr<float>()[5] = std::nextafter(1.0F, 2.0F);
  const std::string digest = tensor_digest(values);
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_NE(digest, tensor_digest(other));
  EXPECT_NE(digest, tensor_digest(values.view({3, 2})));
  EXPECT_NE(tensor_digest(at::zeros({4}, at::kFloat)), tensor_digest(at::zeros({4}, at::kInt)));
  EXPECT_NE(tensor_digest({{"a", values}}), tensor_digest({{"b", values}}));
  EXPECT_NE(tensor_digest({{"a", values}, {"b", other}}), tensor_digest({{"b", other}, {"a", values}}));
}

}  // namespace
}  // namespace stoker::engine
