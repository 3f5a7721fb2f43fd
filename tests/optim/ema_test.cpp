// SPDX-License-Identifier: Apache-2.0
#include "optim/ema.h"

#include <gtest/gtest.h>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <optional>

#include "optim/torch_kernels.h"
#include "tests/dispatched_operations.h"

namespace stoker::optim {
namespace {

/// One parameter, one float buffer and one counter.
class TinyModule : public torch::nn::Module {
 public:
  TinyModule() {
    weight = register_parameter("weight", torch::zeros({2}));
    mean = register_buffer("mean", torch::zeros({2}));
    counter = register_buffer("counter", torch::zeros({}, torch::kInt64));
  }
  void set(float value, int64_t count) {
    torch::NoGradGuard no_grad;
    weight.fill_(value);
    mean.fill_(value * 10);
    counter.fill_(count);
  }
  torch::Tensor weight, mean, counter;
};

float first_value(const torch::Tensor& tensor) { return tensor.flatten()[0].item<float>(); }

TEST(EmaTest, MovesByOneMinusDecay) {
  TinyModule model;
  Ema ema(model, 0.75, /*warmup=*/false);
  model.set(8, 3);
  ema.update();
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 2);
  EXPECT_EQ(first_value(ema.averages()[1].tensor), 20);
  EXPECT_EQ(ema.averages()[2].tensor.item<int64_t>(), 3) << "counters are copied";
  ema.update();
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 3.5F);
  EXPECT_EQ(ema.updates(), 2);
}

TEST(EmaTest, WarmupDecaysByItsFormula) {
  TinyModule model;
  Ema ema(model, 0.9998, /*warmup=*/true);
  double expected = 0;
  for (int update = 0; update < 50; ++update) {
    model.set(static_cast<float>(update + 1), 0);
    ema.update();
    const double decay = std::min(0.9998, (1.0 + update) / (10.0 + update));
    expected += (1 - decay) * (update + 1 - expected);
    EXPECT_NEAR(first_value(ema.averages()[0].tensor), expected, 1e-5 * expected) << update;
  }
  // Warm-up weighs value t by about t^8, and the mean of t over t^8 is 9/10 of the way up.
  EXPECT_NEAR(first_value(ema.averages()[0].tensor), 45, 1e-3);
}

TEST(EmaTest, WarmupGoesOnFromRestoredUpdates) {
  TinyModule model;
  Ema ema(model, 0.9, /*warmup=*/true);
  ema.set_updates(8);  // (1 + 8) / (10 + 8) = 0.5
  model.set(4, 0);
  ema.update();
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 2);
}

TEST(EmaTest, FoundInfLeavesAveragesAlone) {
  TinyModule model;
  model.set(1, 1);
  Ema ema(model, 0.75, /*warmup=*/false);
  model.set(9, 2);
  ema.update(torch::ones({1}));
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 1);
  EXPECT_EQ(first_value(ema.averages()[1].tensor), 10);
  EXPECT_EQ(ema.averages()[2].tensor.item<int64_t>(), 2) << "counters are the model's";
  ema.update(torch::zeros({1}));
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 3);
  EXPECT_EQ(ema.averages()[2].tensor.item<int64_t>(), 2);
}

TEST(EmaTest, SwapExchangesAndTwiceRestores) {
  TinyModule model;
  model.set(1, 1);
  Ema ema(model, 0.5, false);
  model.set(3, 2);
  const void* memory = model.weight.data_ptr();
  ema.swap();
  EXPECT_EQ(first_value(model.weight), 1);
  EXPECT_EQ(first_value(model.mean), 10);
  EXPECT_EQ(model.counter.item<int64_t>(), 1);
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 3);
  ema.swap();
  EXPECT_EQ(first_value(model.weight), 3);
  EXPECT_EQ(model.counter.item<int64_t>(), 2);
  EXPECT_EQ(model.weight.data_ptr(), memory) << "the optimizer must still see the same tensors";
  EXPECT_TRUE(model.weight.requires_grad());
}

TEST(EmaTest, NamesAreTheModels) {
  TinyModule model;
  Ema ema(model, 0.5, false);
  ASSERT_EQ(ema.averages().size(), 3U);
  EXPECT_EQ(ema.averages()[0].name, "weight");
  EXPECT_EQ(ema.averages()[2].name, "counter");
  EXPECT_FALSE(ema.averages()[0].tensor.requires_grad());
}

TEST(EmaTest, KernelsOfDevicesMoveTheAveragesAlike) {
  for (const bool scaled : {false, true}) {
    const auto trained = [&](bool for_devices) {
      std::optional<DeviceKernelsScope> scope;
      if (for_devices) scope.emplace();
      TinyModule model;
      Ema ema(model, 0.99, /*warmup=*/true);
      for (int update = 0; update < 40; ++update) {
        model.set(static_cast<float>(update) * 0.37F + 1, update);
        ema.update(scaled ? torch::full({1}, update % 7 == 0 ? 1.0F : 0.0F) : torch::Tensor());
      }
      return torch::cat({ema.averages()[0].tensor, ema.averages()[1].tensor});
    };
    EXPECT_TRUE(torch::allclose(trained(true), trained(false), 1e-6, 0)) << scaled;
  }
}

TEST(EmaTest, AnUpdateOfAnyNumberOfTensorsIsTwoOperationsOnADevice) {
  const DeviceKernelsScope scope;
  torch::nn::Sequential model;
  for (int layer = 0; layer < 20; ++layer) model->push_back(torch::nn::BatchNorm2d(8));
  Ema ema(*model, 0.99, /*warmup=*/true);
  EXPECT_EQ(fixtures::operations_of([&] { ema.update(); }), 2);
}

}  // namespace
}  // namespace stoker::optim
