// SPDX-License-Identifier: Apache-2.0
#include "engine/saved/weights.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/saved/safetensors.h"
#include "model/model.h"
#include "tests/temporary_directory.h"

namespace stoker::engine {
namespace {

using model::NamedTensor;

std::shared_ptr<model::ImageModel> network(int64_t classes) {
  model::ModelSpec spec;
  spec.name = "resnet18";
  spec.num_classes = classes;
  return model::make_model(spec);
}

std::string problem_of(const std::vector<NamedTensor>& wanted, const std::vector<NamedTensor>& given) {
  try {
    require_same_table(wanted, given, "w.safetensors");
  } catch (const core::Error& error) {
    return error.what();
  }
  return "";
}

TEST(WeightsTest, ListsEveryDifferenceAtOnce) {
  const std::vector<NamedTensor> wanted = {
      {"a", torch::zeros({2})}, {"b", torch::zeros({2, 3})}, {"c", torch::zeros({1})}};
  EXPECT_EQ(problem_of(wanted, wanted), "");
  EXPECT_EQ(
      problem_of(wanted, {{"b", torch::zeros({3, 2})}, {"c", torch::zeros({1}, at::kLong)}, {"d", torch::zeros({1})}}),
      "w.safetensors: a is missing, b is Float[3,2] instead of Float[2,3], c is Long[1] instead of Float[1] and d "
      "is not of this model");
}

TEST(WeightsTest, ChangesNothingWhenAnythingDiffers) {
  const auto model = network(10);
  auto weights = model::state_of(*network(10));
  weights.pop_back();
  const torch::Tensor before = model::state_of(*model)[0].tensor.clone();
  EXPECT_THROW(load_weights(*model, weights, "x"), core::Error);
  EXPECT_TRUE(torch::equal(model::state_of(*model)[0].tensor, before));
}

TEST(WeightsTest, AStateMovesThroughAFileIntoAChannelsLastModel) {
  const fixtures::TemporaryDirectory folder;
  const auto source = network(10), target = network(10);
  model::to_channels_last(*target);
  write_safetensors(folder / "w", model::state_of(*source));
  load_weights(*target, read_safetensors(folder / "w").tensors, "w");
  const auto a = model::state_of(*source), b = model::state_of(*target);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i].tensor, b[i].tensor)) << a[i].name;
  EXPECT_TRUE(b[0].tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) << "the layout stays the target's";
}

}  // namespace
}  // namespace stoker::engine
