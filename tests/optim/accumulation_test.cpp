// SPDX-License-Identifier: Apache-2.0
// Gradient accumulation: micro-batches of summed losses, divided by the images of the update, are one large
// batch.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "model/loss.h"
#include "optim/optimizer.h"

namespace stoker::optim {
namespace {

/// Many test processes run side by side; waiting threads of a pool would take each other's processors.
const bool kOnOneThread = (at::set_num_threads(1), true);

class NormFreeNet : public torch::nn::Module {
 public:
  NormFreeNet() {
    torch::manual_seed(23);
    conv_ = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).stride(2)));
    fc_ = register_module("fc", torch::nn::Linear(4 * 3 * 3, 5));
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc_(conv_(x).relu().flatten(1)); }

 private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::Linear fc_{nullptr};
};

/// Three updates over the same 12 images, split into micro-batches of these sizes.
std::vector<torch::Tensor> train_with(const std::vector<int64_t>& micro_batches) {
  NormFreeNet net;
  std::vector<NamedParameter> parameters;
  for (const auto& item : net.named_parameters()) parameters.push_back({item.key(), item.value()});
  Optimizer optimizer(parameters, config::ResolvedOptimOptions{});
  torch::manual_seed(29);
  const torch::Tensor images = torch::randn({12, 1, 8, 8});
  const torch::Tensor labels = torch::randint(5, {12}, torch::kInt64);
  for (int update = 0; update < 3; ++update) {
    int64_t begin = 0;
    for (const int64_t count : micro_batches) {
      const torch::Tensor logits = net.forward(images.slice(0, begin, begin + count));
      (model::cross_entropy_sum(logits, labels.slice(0, begin, begin + count), 0.1) / 12).backward();
      begin += count;
    }
    optimizer.step(0.1);
    optimizer.zero_grad();
  }
  return net.parameters();
}

TEST(AccumulationTest, MicroBatchesEqualOneLargeBatch) {
  ASSERT_TRUE(kOnOneThread);
  const auto whole = train_with({12});
  for (const std::vector<int64_t>& split : {std::vector<int64_t>{6, 6}, {3, 3, 3, 3}, {5, 5, 2}}) {
    const auto parts = train_with(split);
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(torch::allclose(whole[i], parts[i], 1e-5, 1e-6)) << i;
  }
}

}  // namespace
}  // namespace stoker::optim
