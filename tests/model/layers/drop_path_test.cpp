// SPDX-License-Identifier: Apache-2.0
#include "model/layers/drop_path.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

namespace stoker::model {
namespace {

TEST(DropPathTest, ZeroesWholeSamplesAndScalesTheOthers) {
  torch::manual_seed(5);
  const torch::Tensor out = drop_path(torch::ones({1000, 2, 3}), 0.25, /*training=*/true);
  const torch::Tensor kept = out.select(1, 0).select(1, 0) > 0;
  EXPECT_TRUE(torch::allclose(out, (kept.to(torch::kFloat32) / 0.75).view({1000, 1, 1}).expand_as(out)));
  EXPECT_NEAR(kept.sum().item<double>(), 750, 50);
}

TEST(DropPathTest, DropsNothingOutsideOfTraining) {
  const torch::Tensor x = torch::ones({100, 4});
  EXPECT_TRUE(torch::equal(drop_path(x, 0.5, /*training=*/false), x));
  EXPECT_TRUE(torch::equal(drop_out(x, 0.5, /*training=*/false), x));
}

TEST(DropPathTest, DrawsFromTorchsGeneratorAndNothingAtRateZero) {
  const torch::Tensor x = torch::ones({64, 4});
  torch::manual_seed(5);
  const torch::Tensor first = drop_path(x, 0.5, true), second = drop_out(x, 0.5, true);
  torch::manual_seed(5);
  EXPECT_TRUE(torch::equal(drop_path(x, 0.5, true), first));
  EXPECT_TRUE(torch::equal(drop_out(x, 0.5, true), second));
  torch::manual_seed(5);
  EXPECT_TRUE(torch::equal(drop_path(x, 0, true), x));
  EXPECT_TRUE(torch::equal(drop_out(x, 0, true), x));
  EXPECT_TRUE(torch::equal(drop_path(x, 0.5, true), first));
}

}  // namespace
}  // namespace stoker::model
