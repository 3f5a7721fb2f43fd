// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/training_speed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "engine/device/torch_compat.h"
#include "tests/engine/nothing_left_behind.h"
#include "tests/engine/probed_run.h"

namespace stoker::engine {
namespace {

using fixtures::ProbedRun;

constexpr double kSeconds = 0.01;
constexpr double kAnyGain = 1;

TrainingVariant in_bfloat16(TrainingVariant way) {
  way.settings.update.precision = {torch::kCPU, /*autocast=*/true, at::kBFloat16};
  return way;
}

TEST(TrainingSpeedTest, TriesEveryWayAndLeavesNothingBehind) {
  fixtures::expect_nothing_left_behind([&](ProbedRun& run) {
    const int threads = at::get_num_threads();
    TrainingVariant usual{&run.learner, run.settings}, shared = usual;
    shared.threads = 2;
    const std::vector<double> seconds = training_seconds({usual, in_bfloat16(usual), shared}, *run.task,
                                                         PassClock::wall, /*batch_size=*/4, kSeconds, kAnyGain);
    ASSERT_EQ(seconds.size(), 3u);
    for (const double of_way : seconds) EXPECT_TRUE(std::isfinite(of_way) && of_way > 0) << of_way;
    EXPECT_EQ(at::get_num_threads(), threads);
  });
}

TEST(TrainingSpeedTest, WaysMayHaveLearnersOfTheirOwn) {
  ProbedRun first("small_cnn", 32, /*width=*/8), last("small_cnn", 32, /*width=*/8);
  model::to_channels_last(*last.learner.model);
  last.settings.channels_last = true;
  const std::vector<double> seconds =
      training_seconds({{&first.learner, first.settings}, {&last.learner, last.settings}}, *first.task,
                       PassClock::own_thread, /*batch_size=*/4, kSeconds, kAnyGain);
  for (const double of_way : seconds) EXPECT_GT(of_way, 0);
}

/// A network that takes squares of 528 pixels alone, as a vision transformer does, and computes them in no time.
class NetworkOf528Pixels : public model::ImageModel {
 public:
  NetworkOf528Pixels() { weight_ = register_parameter("weight", torch::ones({3})); }
  torch::Tensor forward(torch::Tensor images) override {
    if (images.size(3) != 528) throw std::runtime_error("528 pixels");
    return images.mean({2, 3}) * weight_;
  }
  std::string head_prefix() const override { return ""; }

 private:
  torch::Tensor weight_;
};

TEST(TrainingSpeedTest, ANetworkOfOneLargeSizeIsTriedWithIt) {
  ProbedRun run("vit_s_16", 528, /*width=*/8);  // above 512 pixels others are tried with smaller images
  EXPECT_EQ(side_to_try(*run.learner.model, run.settings, torch::kCPU), 528);
  run.learner.model = std::make_shared<NetworkOf528Pixels>();
  run.settings.num_classes = 3;
  const std::vector<double> seconds = training_seconds({{&run.learner, run.settings}}, *run.task, PassClock::wall,
                                                       /*batch_size=*/1, /*least_seconds=*/0, kAnyGain);
  EXPECT_GT(seconds.at(0), 0);
  ProbedRun any_size("resnet18", 528, /*width=*/8);
  EXPECT_EQ(side_to_try(*any_size.learner.model, any_size.settings, torch::kCPU), 256);
  EXPECT_TRUE(any_size.learner.model->is_training());
}

class NetworkWithoutMemory : public model::ImageModel {
 public:
  torch::Tensor forward(torch::Tensor) override { throw std::bad_alloc(); }
  std::string head_prefix() const override { return ""; }
};

TEST(TrainingSpeedTest, ALackOfMemoryDoesNotSayThatANetworkTakesOneSizeAlone) {
  ProbedRun run("small_cnn", 528, /*width=*/8);
  NetworkWithoutMemory network;
  EXPECT_THROW(side_to_try(network, run.settings, torch::kCPU), std::bad_alloc);
}

/// A network that cannot compute in bfloat16, as where oneDNN has no way; otherwise as many passes as are requested.
class FloatOnly : public model::ImageModel {
 public:
  FloatOnly() { weight_ = register_parameter("weight", torch::ones({3})); }
  torch::Tensor forward(torch::Tensor images) override {
    if (compat::autocast_enabled(at::kCPU))
      throw std::runtime_error("could not create a primitive descriptor iterator");
    return images.mean({2, 3}) * weight_;
  }
  std::string head_prefix() const override { return ""; }

 private:
  torch::Tensor weight_;
};

TEST(TrainingSpeedTest, AWayThatCannotBeComputedTakesNoTimeAndTheOthersAreTried) {
  ProbedRun run("small_cnn", 32, /*width=*/8);
  run.learner.model = std::make_shared<FloatOnly>();
  run.settings.num_classes = 3;
  const TrainingVariant usual{&run.learner, run.settings};
  const std::vector<double> seconds =
      training_seconds({usual, in_bfloat16(usual), usual}, *run.task, PassClock::own_thread, 4, kSeconds, kAnyGain);
  EXPECT_GT(seconds[0], 0);
  EXPECT_EQ(seconds[1], 0);
  EXPECT_GT(seconds[2], 0);
  EXPECT_EQ(training_seconds({usual, in_bfloat16(usual)}, *run.task, PassClock::own_thread, 4, kSeconds, kAnyGain)[1],
            0);
}

}  // namespace
}  // namespace stoker::engine
