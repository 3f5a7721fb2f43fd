// SPDX-License-Identifier: Apache-2.0
#include "optim/ema.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"

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
  ema.update(model);
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 2);
  EXPECT_EQ(first_value(ema.averages()[1].tensor), 20);
  EXPECT_EQ(ema.averages()[2].tensor.item<int64_t>(), 3) << "counters are copied";
  ema.update(model);
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 3.5F);
  EXPECT_EQ(ema.updates(), 2);
}

TEST(EmaTest, WarmupDecaysByItsFormula) {
  TinyModule model;
  Ema ema(model, 0.9998, /*warmup=*/true);
  double expected = 0;
  for (int update = 0; update < 50; ++update) {
    model.set(static_cast<float>(update + 1), 0);
    ema.update(model);
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
  ema.update(model);
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 2);
}

TEST(EmaTest, FoundInfLeavesEverythingAlone) {
  TinyModule model;
  model.set(1, 1);
  Ema ema(model, 0.75, /*warmup=*/false);
  model.set(9, 2);
  ema.update(model, torch::ones({1}));
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 1);
  EXPECT_EQ(first_value(ema.averages()[1].tensor), 10);
  EXPECT_EQ(ema.averages()[2].tensor.item<int64_t>(), 1);
  ema.update(model, torch::zeros({1}));
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 3);
  EXPECT_EQ(ema.averages()[2].tensor.item<int64_t>(), 2);
}

TEST(EmaTest, SwapExchangesAndTwiceRestores) {
  TinyModule model;
  model.set(1, 1);
  Ema ema(model, 0.5, false);
  model.set(3, 2);
  const void* memory = model.weight.data_ptr();
  ema.swap(model);
  EXPECT_EQ(first_value(model.weight), 1);
  EXPECT_EQ(first_value(model.mean), 10);
  EXPECT_EQ(model.counter.item<int64_t>(), 1);
  EXPECT_EQ(first_value(ema.averages()[0].tensor), 3);
  ema.swap(model);
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

TEST(EmaTest, RefusesAnotherModel) {
  TinyModule model;
  Ema ema(model, 0.5, false);
  torch::nn::Module other;
  EXPECT_THROW(ema.update(other), core::Error);
}

}  // namespace
}  // namespace stoker::optim
