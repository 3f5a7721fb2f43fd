// SPDX-License-Identifier: Apache-2.0
#include "model/buffers.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "model/model.h"

namespace stoker::model {
namespace {

std::shared_ptr<ImageModel> resnet(bool joined) {
  torch::manual_seed(3);
  ModelSpec spec;
  spec.name = "resnet18";
  spec.num_classes = 10;
  spec.img_size = {32, 32};
  const std::shared_ptr<ImageModel> model = make_model(spec);
  if (joined) join_buffers(*model);
  return model;
}

void expect_same_state(const torch::nn::Module& a, const torch::nn::Module& b) {
  const std::vector<NamedTensor> x = state_of(a), y = state_of(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].name, y[i].name);
    EXPECT_EQ(x[i].tensor.sizes(), y[i].tensor.sizes()) << x[i].name;
    EXPECT_TRUE(at::equal(x[i].tensor, y[i].tensor)) << x[i].name;
  }
}

TEST(BuffersTest, ThoseOfANetworkAreTwoTensorsAndItTrainsToTheSameBits) {
  const auto apart = resnet(false), joined = resnet(true);
  EXPECT_EQ(joined_buffers(*apart).size(), 60U);
  EXPECT_EQ(joined_buffers(*joined).size(), 2U) << "means and variances; counts";
  expect_same_state(*apart, *joined);
  const torch::Tensor images = at::randn({4, 3, 32, 32});
  for (const auto& model : {apart, joined}) {
    for (int i = 0; i < 2; ++i) model->forward(images).sum().backward();
  }
  expect_same_state(*apart, *joined);
  EXPECT_EQ(joined->named_buffers()["bn1.num_batches_tracked"].item<int64_t>(), 2);
}

TEST(BuffersTest, WhatIsWrittenToTheWholeIsWrittenToEach) {
  const auto model = resnet(true);
  for (const torch::Tensor& buffers : joined_buffers(*model)) torch::Tensor(buffers).fill_(7);
  for (const torch::Tensor& buffer : model->buffers()) EXPECT_TRUE(buffer.eq(7).all().item<bool>());
}

TEST(BuffersTest, APartOfANetworkHasItsOwn) {
  const auto model = resnet(true);
  const auto part = model->named_children()["layer2"];
  const std::vector<torch::Tensor> buffers = joined_buffers(*part);
  ASSERT_EQ(buffers.size(), 2U);
  for (const torch::Tensor& some : buffers) torch::Tensor(some).fill_(7);
  int64_t written = 0;
  for (const auto& item : model->named_buffers()) {
    const bool is_of_part = item.key().rfind("layer2.", 0) == 0;
    EXPECT_EQ(item.value().eq(7).all().item<bool>(), is_of_part) << item.key();
    written += is_of_part ? 1 : 0;
  }
  EXPECT_EQ(written, 15);
}

TEST(BuffersTest, OnesThatWereMovedAreJoinedAgainAndKeepTheirNumbers) {
  const auto model = resnet(true);
  // As moving to a device does: each is a tensor of its own again.
  for (torch::Tensor buffer : model->buffers()) buffer.set_data(buffer.clone());
  EXPECT_EQ(joined_buffers(*model).size(), 60U);
  join_buffers(*model);
  to_channels_last(*model);
  EXPECT_EQ(joined_buffers(*model).size(), 2U);
  expect_same_state(*model, *resnet(false));
}

}  // namespace
}  // namespace stoker::model
