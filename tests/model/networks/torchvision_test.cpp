// SPDX-License-Identifier: Apache-2.0
// EfficientNet, MobileNetV3, ConvNeXt and ViT against torchvision's. Golden numbers:
// scripts/parity/torchvision_golden.py with torchvision 0.14, torch 1.13.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "model/loss.h"
#include "model/model.h"
#include "tests/model/deterministic_fill.h"

namespace stoker::model {
namespace {

/// Many test processes run side by side; waiting threads of a pool would take each other's processors.
const bool kAloneOnOneThread = (at::set_num_threads(1), true);

constexpr double kLogitTolerance = 1e-4;  // of the largest number; float32 sums in another order

struct NamesGolden {
  const char* name;
  size_t tensors;
  int64_t parameters;
  uint64_t names;
};

constexpr NamesGolden kNamesGoldens[] = {
    {"efficientnet_b0", 360, 5288548, 0x2857a4aae98b9eabU},
    {"efficientnet_b1", 508, 7794184, 0xb5e6419ae76b0fc3U},
    {"efficientnet_b2", 508, 9109994, 0x12c56776d1e8e996U},
    {"efficientnet_b3", 574, 12233232, 0xf53ec134d4bc5f1dU},
    {"efficientnet_b4", 706, 19341616, 0x7daf094630fc0cf4U},
    {"efficientnet_b5", 854, 30389784, 0x2550f2d8dfe9913dU},
    {"efficientnet_b6", 986, 43040704, 0x0533c2f71b20681bU},
    {"efficientnet_b7", 1200, 66347960, 0x2938e3f562516ec8U},
    {"mobilenet_v3_small", 244, 2542856, 0xc2068fde8450db0bU},
    {"mobilenet_v3_large", 312, 5483032, 0xd0ce99875e2b9e57U},
    {"convnext_tiny", 182, 28589128, 0xb384f6b73a134ad7U},
    {"convnext_small", 344, 50223688, 0x1fd09fd550d1ba4cU},
    {"convnext_base", 344, 88591464, 0x05aacc8ad0bfd445U},
    {"vit_s_16", 152, 22050664, 0xb86fc5b70faed308U},
    {"vit_b_16", 152, 86567656, 0x40eb48fa67f8e816U},
};

/// Two images of 64x64 pixels, five classes.
struct ComputedGolden {
  const char* name;
  std::vector<double> logits;  ///< in evaluation, [2, 5]
  double train_loss;           ///< mean, without dropout and stochastic depth
  const char* first_convolution;
  double gradient_norm;   ///< of its weight
  const char* last_norm;  ///< batch norm, or null
  double variance_sum;    ///< of its running variances after one step
};

const std::vector<ComputedGolden> kComputedGoldens = {
    {"efficientnet_b0",
     {0.0450511575, 0.222087219, -0.121467628, -0.172563374, -0.154985324, 0.0438704789, 0.221917376, -0.12290743,
      -0.173063979, -0.155172035},
     1.68782043,
     "features.0.0.weight",
     16.8996964,
     "features.8.1",
     1446.68018},
    {"efficientnet_b5",
     {-0.0324329734, 0.11538215, -0.257439226, 0.254226744, 0.101334982, -0.0476018935, 0.0898502618, -0.266427338,
      0.245310977, 0.0704762936},
     1.66212881,
     "features.0.0.weight",
     126.880791,
     "features.8.1",
     2165.34497},
    {"mobilenet_v3_small",
     {-0.217233494, -0.133363619, 0.0224862397, -0.0716453195, -0.326740444, -0.143147483, -0.149528563, -0.00217894837,
      -0.0239081681, -0.218225136},
     1.45592093,
     "features.0.0.weight",
     3.13106656,
     "features.12.1",
     616.807434},
    {"mobilenet_v3_large",
     {-7.36325407, -54.8151016, -9.73536968, -1.64765275, 10.2419987, 1.53686953, -36.3216362, -8.55581379, -4.54344463,
      10.0626869},
     1.73371696,
     "features.0.0.weight",
     9.13571548,
     "features.16.1",
     1024.09631},
    {"convnext_tiny",
     {0.301767707, 0.833558559, -0.281675279, -0.183889836, 1.20497191, -0.0880252421, -1.86589766, 0.946654201,
      -0.78870666, 0.191009104},
     1.88714194,
     "features.0.0.weight",
     3.30511379,
     nullptr,
     0},
    {"vit_s_16",
     {-0.816804886, 0.168367937, -0.979176044, 0.35361886, 2.12757039, 0.31031242, 0.0758843869, -1.14719665,
      0.539952099, 1.30436265},
     1.93042767,
     "conv_proj.weight",
     20.3566475,
     nullptr,
     0},
};

struct DrawGolden {
  const char* model;
  const char* parameter;
  std::vector<double> values;  ///< its first two
};

/// After torch.manual_seed(7).
const std::vector<DrawGolden> kDrawGoldens = {
    {"efficientnet_b0", "features.0.0.weight", {-0.132556334, -0.129697293}},
    {"efficientnet_b0", "classifier.1.weight", {-0.156216726, 0.0468622744}},
    {"mobilenet_v3_small", "features.0.0.weight", {-0.164283946, 0.167531639}},
    {"mobilenet_v3_small", "classifier.3.weight", {0.00358552299, -0.000894694531}},
    {"convnext_tiny", "features.0.0.weight", {-0.0420334265, 0.00805634912}},
    {"convnext_tiny", "classifier.2.weight", {-0.0123535153, 0.00721606053}},
    {"vit_s_16", "conv_proj.weight", {-0.00528100738, -0.0566248037}},
    {"vit_s_16", "encoder.pos_embedding", {0.0174902622, -0.0301522221}},
    {"vit_s_16", "encoder.layers.encoder_layer_0.self_attention.in_proj_weight", {0.00586572289, 0.0110823512}},
    {"vit_s_16", "encoder.layers.encoder_layer_3.mlp.3.weight", {0.0381241739, -0.0346179046}},
    {"vit_s_16", "encoder.layers.encoder_layer_11.mlp.3.weight", {0.0200785305, -0.0532847047}},
};

std::shared_ptr<ImageModel> five_classes_at_64(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  spec.num_classes = 5;
  spec.img_size = 64;
  return make_model(spec);
}

torch::Tensor two_images() { return uniform_numbers(2 * 3 * 64 * 64, 999).reshape({2, 3, 64, 64}) * 2; }

constexpr int64_t kManyParameters = 31'000'000;  // to make these networks takes seconds each

void expect_same_names(bool large) {
  for (const NamesGolden& golden : kNamesGoldens) {
    if ((golden.parameters > kManyParameters) != large) continue;
    ModelSpec spec;
    spec.name = golden.name;
    const auto model = make_model(spec);
    EXPECT_EQ(state_of(*model).size(), golden.tensors) << golden.name;
    EXPECT_EQ(parameter_count(*model), golden.parameters) << golden.name;
    EXPECT_EQ(names_hash(*model), golden.names) << golden.name;
  }
}

TEST(TorchvisionTest, HasTheSameNamesShapesAndParameterCounts) {
  ASSERT_TRUE(kAloneOnOneThread);
  expect_same_names(/*large=*/false);
}

/// ctest runs it as model.large_networks, labelled slow.
TEST(TorchvisionTest, DISABLED_LargeNetworksHaveTheSameNamesShapesAndParameterCounts) {
  expect_same_names(/*large=*/true);
}

TEST(TorchvisionTest, ComputesTheSame) {
  for (const ComputedGolden& golden : kComputedGoldens) {
    const auto model = five_classes_at_64(golden.name);
    fill_by_formula(*model);
    model->eval();
    const torch::Tensor logits = model->forward(two_images());
    EXPECT_TRUE(near_golden(logits, golden.logits, kLogitTolerance)) << golden.name << ' ' << logits;
    model->train();
    const torch::Tensor labels = torch::tensor({1, 3}, torch::kInt64);
    const torch::Tensor loss = cross_entropy_sum(model->forward(two_images()), labels, 0) / 2;
    loss.backward();
    EXPECT_TRUE(near_golden(loss, {golden.train_loss}, kLogitTolerance)) << golden.name << ' ' << loss;
    const std::string first = golden.first_convolution;
    const torch::Tensor norm = model->named_parameters()[first].grad().norm();
    EXPECT_TRUE(near_golden(norm, {golden.gradient_norm}, 2e-3)) << golden.name << ' ' << norm;
    if (golden.last_norm == nullptr) continue;
    const torch::Tensor variances = model->named_buffers()[golden.last_norm + std::string(".running_var")].sum();
    EXPECT_TRUE(near_golden(variances, {golden.variance_sum}, kLogitTolerance)) << golden.name << ' ' << variances;
  }
}

TEST(TorchvisionTest, DrawsTheSameFirstWeightsForASeed) {
  std::string name;
  std::shared_ptr<ImageModel> model;
  for (const DrawGolden& golden : kDrawGoldens) {
    if (name != golden.model) {
      torch::manual_seed(7);
      model = five_classes_at_64(name = golden.model);
    }
    const torch::Tensor values = model->named_parameters()[golden.parameter].flatten().slice(0, 0, 2);
    EXPECT_TRUE(near_golden(values, golden.values, 1e-4)) << name << ' ' << golden.parameter << ' ' << values;
  }
}

TEST(TorchvisionTest, ConvolutionalNetworksTakeAnySizeAndNumberOfChannels) {
  for (const char* name : {"efficientnet_b0", "mobilenet_v3_small", "convnext_tiny"}) {
    ModelSpec spec;
    spec.name = name;
    spec.in_chans = 1;
    spec.num_classes = 7;
    const auto model = make_model(spec);
    EXPECT_EQ(model->forward(torch::zeros({2, 1, 40, 56})).sizes(), (std::vector<int64_t>{2, 7})) << name;
  }
}

}  // namespace
}  // namespace stoker::model
