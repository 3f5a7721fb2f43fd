// SPDX-License-Identifier: Apache-2.0
// Heat stands over the part of a picture that changed the outputs, whatever the layout of a network's maps.
#include "engine/task/heat_map.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "model/model.h"

namespace stoker::engine {
namespace {

/// Heat relative to that of the lower left quarter, which no picture of these tests changes.
torch::Tensor relative_heat(model::ImageModel& network, const torch::Tensor& image) {
  const torch::Tensor heat = heat_of(network, image)[0];  // [H, W]
  const int64_t half = heat.size(0) / 2;
  return heat / (heat.slice(0, half).slice(1, 0, half).mean() + 1e-6);
}

class HeatMapTest : public testing::TestWithParam<const char*> {};

TEST_P(HeatMapTest, HeatChangesWhereThePictureDoes) {
  torch::manual_seed(3);
  model::ModelSpec spec;
  spec.name = GetParam();
  spec.img_size = {128, 128};
  spec.num_classes = 10;
  const auto network = model::make_model(spec);
  network->eval();
  {
    const torch::NoGradGuard no_gradients;  // a ViT's classifier begins with zeros, which nothing changes
    for (const auto& [name, tensor] : model::state_of(*network)) {
      if (name == network->head_prefix() + "weight") tensor.normal_(0, 0.1);
    }
  }
  const torch::Tensor plain = torch::full({1, 3, 128, 128}, 0.5);
  torch::Tensor changed = plain.clone();
  changed.slice(2, 8, 40).slice(3, 88, 120) = torch::randn({1, 3, 32, 32}) * 3;  // upper right
  const torch::Tensor difference = (relative_heat(*network, changed) - relative_heat(*network, plain)).abs();
  const int64_t place = difference.argmax().item<int64_t>();
  EXPECT_LT(place / 128, 64) << "row";
  EXPECT_GE(place % 128, 64) << "column";
}

INSTANTIATE_TEST_SUITE_P(Networks, HeatMapTest,
                         testing::Values("small_cnn", "resnet18", "densenet121", "convnext_tiny", "vit_s_16", "swin_t",
                                         "swin_v2_t"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace stoker::engine
