// SPDX-License-Identifier: Apache-2.0
#include "model/freeze.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "model/loss.h"
#include "model/model.h"
#include "tests/model/deterministic_fill.h"

namespace stoker::model {
namespace {

std::shared_ptr<ImageModel> tiny_model() {
  ModelSpec spec;
  spec.name = "small_cnn";
  spec.in_chans = 1;
  spec.num_classes = 4;
  spec.width = 4;
  return make_model(spec);
}

std::vector<std::string> learning(const ImageModel& model) {
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) {
    if (item.value().requires_grad()) names.push_back(item.key());
  }
  return names;
}

TEST(FreezeTest, TakesModulesParametersAndGlobs) {
  const auto model = tiny_model();
  freeze(*model, "stem,block?,down3.conv.weight,*.bias");
  EXPECT_EQ(learning(*model),
            (std::vector<std::string>{"down2.conv.weight", "down2.norm.weight", "down3.norm.weight", "fc.weight"}));
  EXPECT_GT(frozen_count(*model), parameter_count(*model) / 2);
}

TEST(FreezeTest, TheLastPatternThatMatchesDecides) {
  const auto model = tiny_model();
  freeze(*model, "*,!fc");
  EXPECT_EQ(learning(*model), (std::vector<std::string>{"fc.weight", "fc.bias"}));
  freeze(*model, "!*,fc.bias");
  EXPECT_EQ(learning(*model).size(), model->parameters().size() - 1);
}

TEST(FreezeTest, TheBackboneIsAllButTheClassifier) {
  const auto model = tiny_model();
  freeze_backbone(*model);
  EXPECT_EQ(learning(*model), (std::vector<std::string>{"fc.weight", "fc.bias"}));
  ModelSpec spec;
  spec.name = "two_stream_convlstm";
  spec.backbone = "mobilenet_v3_small";
  const auto clips = make_model(spec);
  EXPECT_TRUE(clips->is_in_backbone("high_quality.backbone.features.0.0.weight"));
  for (const auto& item : clips->named_parameters()) {
    EXPECT_EQ(clips->is_in_backbone(item.key()), item.key().find(".backbone.") != std::string::npos) << item.key();
  }
}

TEST(FreezeTest, FrozenNormsKeepTheirStatisticsAndTheOthersDoNot) {
  const auto model = tiny_model();
  freeze(*model, "stem,block1.first.norm.bias");
  model->eval();
  model->train();
  cross_entropy_sum(model->forward(uniform_numbers(4 * 256, 1).reshape({4, 1, 16, 16})),
                    torch::tensor({0, 1, 2, 3}, torch::kInt64), 0)
      .backward();
  auto buffers = model->named_buffers();
  EXPECT_EQ(buffers["stem.norm.running_mean"].abs().sum().item<float>(), 0);
  EXPECT_EQ(buffers["stem.norm.num_batches_tracked"].item<int64_t>(), 0);
  EXPECT_GT(buffers["block1.first.norm.running_mean"].abs().sum().item<float>(), 0);  // its weight learns
  EXPECT_FALSE(model->named_parameters()["stem.conv.weight"].grad().defined());
  EXPECT_TRUE(model->named_parameters()["block1.first.conv.weight"].grad().defined());
}

void expect_refused(const std::string& patterns, const std::string& message) {
  try {
    freeze(*tiny_model(), patterns);
    FAIL() << patterns << " was accepted";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::config);
    EXPECT_EQ(error.what(), message);
    EXPECT_NE(error.hint().find("fc"), std::string::npos) << error.hint();
  }
}

TEST(FreezeTest, RefusesPatternsWithoutAMatchAndNetworksWithNothingToLearn) {
  expect_refused("stem,layer1", "--freeze layer1: no parameter has such a name");
  expect_refused("st", "--freeze st: no parameter has such a name");
  expect_refused("*", "--freeze * leaves nothing to learn");
}

}  // namespace
}  // namespace stoker::model
