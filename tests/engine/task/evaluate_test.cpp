// SPDX-License-Identifier: Apache-2.0
#include "engine/task/evaluate.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/probed_run.h"

namespace stoker::engine {
namespace {

using config::TestTimeAugmentation;

/// Each output is a column's sum, so that the outputs show which way round an image was. Keeps what it was given.
class ColumnModel : public model::ImageModel {
 public:
  torch::Tensor forward(torch::Tensor images) override {
    seen.push_back(images);
    return images.flatten(1, -2).sum(1);
  }
  std::string head_prefix() const override { return "fc."; }

  std::vector<torch::Tensor> seen;
};

TEST(InferTest, HflipGivesTheMeanOfTheOutputsForImagesAndMirrorImages) {
  torch::manual_seed(1);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{2, 3, 4, 5}, std::vector<int64_t>{2, 6, 3, 4, 5}}) {
    const torch::Tensor images = at::randn(shape), before = images.clone();
    const torch::Tensor columns = images.flatten(1, -2).sum(1);
    ColumnModel model;
    const torch::Tensor outputs = infer(model, images, Precision(), TestTimeAugmentation::hflip);
    EXPECT_TRUE(at::allclose(outputs, (columns + columns.flip(1)) / 2)) << outputs;
    ASSERT_EQ(model.seen.size(), 2u);
    EXPECT_TRUE(at::equal(model.seen[0], images));
    EXPECT_TRUE(at::equal(model.seen[1].select(-1, 0), images.select(-1, 4))) << "left and right change places";
    EXPECT_TRUE(at::equal(images, before));
  }
}

TEST(InferTest, SeveralCropsGiveTheMeanOfTheirOutputs) {
  for (const auto& [tta, crops] : {std::pair{TestTimeAugmentation::ten_crop, 10}, {TestTimeAugmentation::scales, 3}}) {
    const torch::Tensor images = at::randn({2, 3, crops * 4, 5});
    ColumnModel model;
    const torch::Tensor outputs = infer(model, images, Precision(), tta);
    EXPECT_TRUE(at::allclose(outputs, images.flatten(1, -2).sum(1) / crops, 1e-5, 1e-6)) << outputs;
    ASSERT_EQ(model.seen.size(), static_cast<size_t>(crops));
    EXPECT_TRUE(at::equal(model.seen.back(), images.narrow(2, (crops - 1) * 4, 4)));
  }
}

TEST(InferTest, WithoutAugmentationOutputsAreThoseOfOnePass) {
  const torch::Tensor images = at::randn({2, 3, 4, 5});
  ColumnModel model;
  const torch::Tensor outputs = infer(model, images, Precision(), TestTimeAugmentation::none);
  EXPECT_TRUE(at::equal(outputs, images.flatten(1, -2).sum(1)));
  EXPECT_EQ(model.seen.size(), 1u);
}

TEST(InferTest, TheMirrorImagesTakeLittleMoreMemoryAndAPlanKnowsIt) {
  fixtures::ProbedRun run("small_cnn", 32, /*width=*/8);
  const auto predicted = [&run](TestTimeAugmentation tta) {
    run.settings.tta = tta;
    return probe_memory(run.learner, *run.task, run.settings).evaluation_bytes(16);
  };
  const int64_t once = predicted(TestTimeAugmentation::none), twice = predicted(TestTimeAugmentation::hflip);
  const int64_t input_bytes = 16 * 3 * 32 * 32 * 4;
  EXPECT_GT(twice, once);
  EXPECT_LE(twice, once + input_bytes + 4096)
      << "passes come one after the other: beside one lie the mirror images alone";
}

}  // namespace
}  // namespace stoker::engine
