// SPDX-License-Identifier: Apache-2.0
#include "train/setup/compute_choices.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <stdexcept>

#include "tests/config/command_words.h"
#include "tests/engine/probed_run.h"

namespace stoker::train {
namespace {

/// A network that one thread cannot compute.
class NetworkOfSeveralThreads : public model::ImageModel {
 public:
  NetworkOfSeveralThreads() { weight_ = register_parameter("weight", torch::ones({3})); }
  torch::Tensor forward(torch::Tensor images) override {
    was_given_one = was_given_one || at::get_num_threads() == 1;
    if (at::get_num_threads() == 1) throw std::runtime_error("could not create a primitive descriptor iterator");
    return images.mean({2, 3}) * weight_;
  }
  std::string head_prefix() const override { return ""; }

  bool was_given_one = false;

 private:
  torch::Tensor weight_;
};

TEST(ComputeChoicesTest, ThreadsThatCannotComputeTheNetworkAreNotTheFastest) {
  core::MachineFacts machine;
  machine.cpus = 2;
  const auto given = fixtures::parsed({"--data-dir", "x", "--device", "cpu"});
  Settings settings(*given, machine);
  if (settings.facts().threads) GTEST_SKIP() << "OMP_NUM_THREADS is set: nothing is measured";
  fixtures::ProbedRun run("small_cnn", 32, /*width=*/8);
  const auto network = std::make_shared<NetworkOfSeveralThreads>();
  run.learner.model = network;
  run.settings.num_classes = 3;
  measure_threads({settings, run.learner, *run.task, [&] { return run.settings; }});
  EXPECT_TRUE(network->was_given_one);
  EXPECT_FALSE(settings.facts().threads);
  EXPECT_EQ(settings.options().device.threads, 2);
}

}  // namespace
}  // namespace stoker::train
