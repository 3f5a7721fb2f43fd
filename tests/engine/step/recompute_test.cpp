// SPDX-License-Identifier: Apache-2.0
#include "engine/step/recompute.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "engine/device/precision.h"
#include "model/freeze.h"
#include "model/loss.h"
#include "model/model.h"

namespace stoker::engine {
namespace {

struct Case {
  std::string name, freeze;
  bool autocast = false;
};

/// The results of one forward and backward pass.
struct Traces {
  torch::Tensor logits, next_random;  ///< [B, classes], [1]
  std::vector<model::NamedTensor> gradients, buffers;
};

Traces trace(const Case& c, bool recompute) {
  at::set_num_threads(1);
  torch::manual_seed(7);
  model::ModelSpec spec;
  spec.name = c.name;
  spec.num_classes = 5;
  spec.width = 8;
  spec.drop_rate = 0.3;
  spec.drop_path_rate = c.name == "efficientnet_b0" ? 0.5 : 0;
  const auto network = model::make_model(spec);
  model::freeze(*network, c.freeze);
  if (recompute) network->set_stage_runner(run_and_recompute);
  network->train();
  Precision precision;
  precision.autocast = c.autocast;
  Traces traces;
  for (int step = 0; step < 2; ++step) {
    torch::Tensor loss;
    {
      const AutocastScope autocast(precision);
      traces.logits = network->forward(torch::randn({4, 3, 32, 32}));
      loss = model::cross_entropy_sum(traces.logits, torch::arange(4), 0);
    }
    loss.backward();
  }
  traces.next_random = torch::rand({1});
  for (const auto& item : network->named_parameters()) traces.gradients.push_back({item.key(), item.value().grad()});
  for (const auto& item : network->named_buffers()) traces.buffers.push_back({item.key(), item.value()});
  return traces;
}

void expect_same(const std::vector<model::NamedTensor>& a, const std::vector<model::NamedTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].tensor.defined(), b[i].tensor.defined()) << a[i].name;
    if (!a[i].tensor.defined()) continue;
    EXPECT_TRUE(torch::equal(a[i].tensor, b[i].tensor)) << a[i].name;
  }
}

class RecomputeTest : public ::testing::TestWithParam<Case> {};

TEST_P(RecomputeTest, LeavesTheSameBitsAsRunningDirectly) {
  const Traces direct = trace(GetParam(), /*recompute=*/false), twice = trace(GetParam(), /*recompute=*/true);
  EXPECT_TRUE(torch::equal(direct.logits, twice.logits));
  EXPECT_TRUE(torch::equal(direct.next_random, twice.next_random));
  expect_same(direct.gradients, twice.gradients);
  expect_same(direct.buffers, twice.buffers);
}

INSTANTIATE_TEST_SUITE_P(Networks, RecomputeTest,
                         ::testing::Values(Case{"small_cnn", ""}, Case{"small_cnn", "", true},
                                           Case{"small_cnn", "stem"}, Case{"small_cnn", "*,!fc"},
                                           Case{"efficientnet_b0", ""}, Case{"resnet9", ""},
                                           Case{"resnet18", "layer1,layer2"}));

TEST(RecomputeStageTest, RunsAStageOnceWithoutGradientsAndTwiceWithThem) {
  int64_t runs = 0;
  torch::nn::Module stage;
  const model::StageForward forward = [&runs](const torch::Tensor& x) {
    ++runs;
    return x.exp();
  };
  const torch::Tensor x = torch::ones({2}, torch::requires_grad());
  {
    const torch::NoGradGuard no_gradients;
    EXPECT_FALSE(run_and_recompute(stage, forward, x).requires_grad());
  }
  EXPECT_EQ(runs, 1);
  run_and_recompute(stage, forward, torch::ones({2}));  // nothing there learns
  EXPECT_EQ(runs, 2);
  run_and_recompute(stage, forward, x).sum().backward();
  EXPECT_EQ(runs, 4);
  EXPECT_TRUE(torch::allclose(x.grad(), x.detach().exp()));
}

}  // namespace
}  // namespace stoker::engine
