// SPDX-License-Identifier: Apache-2.0
// Passes that are about shapes alone call no operation of oneDNN: it was proven right on other shapes and layouts.
#include "engine/device/without_onednn.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "engine/probe/network_flop.h"
#include "engine/probe/probe_input.h"
#include "tests/dispatched_operations.h"
#include "tests/engine/probed_run.h"

namespace stoker::engine {
namespace {

using fixtures::ProbedRun;

template <typename Work>
int64_t convolutions_of_onednn(const Work& work) {
  const fixtures::DispatchedOperations operations;
  work();
  const auto by_name = operations.by_name();
  const auto found = by_name.find("aten::mkldnn_convolution");
  return found == by_name.end() ? 0 : found->second;
}

TEST(WithoutOnednnTest, PassesAboutShapesAloneDoNotCallIt) {
  if (!at::globalContext().hasMKLDNN()) GTEST_SKIP() << "this LibTorch has no oneDNN";
  ProbedRun run("resnet18", 64, /*width=*/8);
  const torch::Tensor image = torch::rand({1, 3, 64, 64});
  const torch::NoGradGuard no_gradients;
  ASSERT_GT(convolutions_of_onednn([&] { run.learner.model->forward(torch::rand({2, 3, 64, 64})); }), 0);
  EXPECT_EQ(convolutions_of_onednn([&] { trains_on_one_image(*run.learner.model, image); }), 0);
  EXPECT_EQ(convolutions_of_onednn([&] { takes_squares_of(*run.learner.model, run.settings, 64, torch::kCPU); }), 0);
  EXPECT_EQ(convolutions_of_onednn([&] { network_flop(run.learner, run.settings); }), 0);
  EXPECT_GT(convolutions_of_onednn([&] { run.learner.model->forward(torch::rand({2, 3, 64, 64})); }), 0);
}

}  // namespace
}  // namespace stoker::engine
