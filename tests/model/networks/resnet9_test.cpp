// SPDX-License-Identifier: Apache-2.0
// resnet9 against the same network in Python. Golden numbers: scripts/parity/plain_golden.py with torch 1.13.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "model/loss.h"
#include "model/model.h"
#include "tests/model/deterministic_fill.h"

namespace stoker::model {
namespace {

std::shared_ptr<ImageModel> nine_layers(int64_t width, int64_t num_classes, bool zero_init_residual = false) {
  ModelSpec spec;
  spec.name = "resnet9";
  spec.width = width;
  spec.num_classes = num_classes;
  spec.zero_init_residual = zero_init_residual;
  return make_model(spec);
}

TEST(ResNet9Test, HasPagesParametersAtWidth64) {
  const auto model = nine_layers(64, 10);
  EXPECT_EQ(parameter_count(*model), 6573130);
  EXPECT_EQ(state_of(*model).size(), 50U);
  EXPECT_EQ(names_hash(*model), 0xf93a1543ab0aa509U);
}

const std::vector<double> kLogits = {-1.33749151, -1.81050932, -0.0141643416, -0.254796267, 1.57361758,
                                     -1.40954864, -1.72013748, 0.0590246767,  -0.275287956, 1.5596925};

TEST(ResNet9Test, ComputesWhatTheSameNetworkInPythonDoes) {
  at::set_num_threads(1);
  const auto model = nine_layers(8, 5);
  fill_by_formula(*model);
  const torch::Tensor images = uniform_numbers(2 * 3 * 32 * 32, 999).reshape({2, 3, 32, 32}) * 2;
  model->eval();
  EXPECT_TRUE(near_golden(model->forward(images), kLogits, 1e-5)) << model->forward(images);
  model->train();
  const torch::Tensor labels = torch::tensor({1, 3}, torch::kInt64);
  const torch::Tensor loss = cross_entropy_sum(model->forward(images), labels, 0) / 2;
  loss.backward();
  EXPECT_TRUE(near_golden(loss, {1.9535917}, 1e-5)) << loss;
  const torch::Tensor norm = model->named_parameters()["stem.conv.weight"].grad().norm();
  EXPECT_TRUE(near_golden(norm, {1.39094186}, 1e-4)) << norm;
}

TEST(ResNet9Test, ResidualBranchesCanStartAtZero) {
  const auto model = nine_layers(8, 5, /*zero_init_residual=*/true);
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters["layer1.second.norm.weight"].abs().sum().item<float>(), 0);
  EXPECT_EQ(parameters["layer3.second.norm.weight"].abs().sum().item<float>(), 0);
  EXPECT_EQ(parameters["layer3.first.norm.weight"].sum().item<float>(), 64);
}

}  // namespace
}  // namespace stoker::model
