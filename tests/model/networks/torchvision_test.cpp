// SPDX-License-Identifier: Apache-2.0
// Networks against torchvision's. Golden numbers:
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

constexpr double kNormTolerance = 2e-2;  // rounding flips relus: AVX2 and AVX-512 differ by 1 %; LearnsTheSame is exact
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
    {"mobilenet_v2", 314, 3504872, 0x55fe61d748b59a7fU},
    {"regnet_y_400mf", 384, 4344144, 0x2d2549baaaf0a8f9U},
    {"regnet_x_400mf", 428, 5495976, 0xa126be29c7d39f34U},
    {"densenet121", 727, 7978856, 0x59131d3451d6e86cU},
    {"resnext50_32x4d", 320, 25028904, 0xdfe6b0c5c031a083U},
    {"swin_t", 185, 28288354, 0xf0fa2c3f2e8cfdbdU},
    {"swin_v2_t", 233, 28351570, 0x5c0487f8153acdc1U},
    {"efficientnet_v2_s", 782, 21458488, 0x5688a90a49b925baU},
    {"regnet_y_800mf", 340, 6432512, 0xd188eb7422d1a207U},
    {"regnet_y_1_6gf", 626, 11202430, 0x9a46ab8e9b098a20U},
    {"regnet_y_3_2gf", 494, 19436338, 0xeb443fb2894fb89dU},
    {"regnet_x_800mf", 320, 7259656, 0x34f77ac542ff823dU},
    {"regnet_x_1_6gf", 356, 9190136, 0xaa29a1476684e45aU},
    {"regnet_x_3_2gf", 482, 15296552, 0xcb1303f681bb2e90U},
    {"densenet161", 967, 28681000, 0xb2b88cd33d3f7d11U},
    {"densenet169", 1015, 14149480, 0xcdfa0e7dcee33304U},
    {"densenet201", 1207, 20013928, 0x10dca353ea54f0c4U},
    {"wide_resnet50_2", 320, 68883240, 0xee5c2fa42b798390U},
    {"resnext101_32x8d", 626, 88791336, 0x445357ca4a567f46U},
    {"resnext101_64x4d", 626, 83455272, 0x582dc9d933914625U},
    {"swin_s", 353, 49606258, 0x02bced28a9d2e659U},
    {"swin_b", 353, 87768224, 0x148acc8027d82883U},
    {"swin_v2_s", 449, 49737442, 0x91b712a56078cd95U},
    {"swin_v2_b", 449, 87930848, 0x43a9544968ff5263U},
    {"efficientnet_v2_m", 1120, 54139356, 0x5290737a399f78e1U},
    {"vit_b_32", 152, 88224232, 0x420d133537c1e28eU},
    {"regnet_y_8gf", 406, 39381472, 0x9796be7dcd855cc2U},
    {"regnet_x_8gf", 446, 39572648, 0x3f422889af4d37c8U},
    {"regnet_y_16gf", 428, 83590140, 0x24e062249c8390b0U},
    {"regnet_x_16gf", 428, 54278536, 0x7fccadbeb00f6241U},
    {"wide_resnet101_2", 626, 126886696, 0x66d3ba6c2455460fU},
    {"efficientnet_v2_l", 1548, 118515272, 0x2ef3b851d0e2ed22U},
    {"regnet_x_32gf", 446, 107811560, 0x45a4c8e62a7a49baU},
    {"regnet_y_32gf", 472, 145046770, 0x6ca2f41cf22b9061U},
    {"convnext_large", 344, 197767336, 0x09232db3a437c1a6U},
    {"vit_l_16", 296, 304326632, 0x2dbd7be869e32f56U},
};

/// Two images of 64x64 pixels, five classes.
struct ComputedGolden {
  const char* name;
  std::vector<double> logits;  ///< in evaluation, [2, 5]
  double train_loss;           ///< mean, without dropout and stochastic depth
  const char* first_convolution;
  double gradient_norm;   ///< norm of its weight's gradient
  const char* last_norm;  ///< batch norm, or null
  double variance_sum;    ///< sum of its running variances after one step
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
    {"mobilenet_v2",
     {-2.08950448, 0.208960235, -2.0752027, -2.06017303, -1.80963588, -1.66266918, 0.143615127, -1.87658238,
      -1.56737196, -1.22122157},
     1.49059153,
     "features.0.0.weight",
     161.47171,
     "features.18.1",
     1462.85535},
    {"regnet_y_400mf",
     {7.4653883, -4.00050592, 6.11033773, -4.17001772, -6.73104906, 8.50508881, -5.41450262, 12.663125, -6.40551615,
      -3.94432878},
     2.03081226,
     "stem.0.weight",
     587.46637,
     "trunk_output.block4.block4-5.f.c.1",
     405.912201},
    {"regnet_x_400mf",
     {-152.089813, 992.429932, -520.012329, -912.145691, -480.232727, -187.203827, 1003.89142, -447.898071, -938.327393,
      -444.978729},
     4.1519742,
     "stem.0.weight",
     3006.83228,
     "trunk_output.block4.block4-11.f.c.1",
     395.460205},
    {"densenet121",
     {0.351954997, 0.00175575912, 1.40211725, 1.23679435, 1.25611198, 0.339829922, -0.00342328846, 1.45763791,
      1.34415007, 1.19577622},
     1.81010306,
     "features.conv0.weight",
     47.479229,
     "features.norm5",
     946.813538},
    {"resnext50_32x4d",
     {-263.363892, 409.463104, -600.292053, -1720.29846, 873.774963, -325.459839, 541.049377, -627.162537, -1775.73206,
      901.088013},
     2.55666232,
     "conv1.weight",
     1172.96204,
     "layer4.2.bn3",
     2003.76379},
    {"swin_t",
     {1.16867423, -0.0603235811, -0.0294622332, 0.324405968, -0.382930219, 1.55818868, 0.603301525, 0.036977455,
      -0.212101057, -0.564279199},
     2.22118163,
     "features.0.0.weight",
     2.06328583,
     nullptr,
     0},
    {"swin_v2_t",
     {-1.75776815, 0.599065125, -1.4181962, 1.33040261, -1.3431983, -1.64850652, 0.951890051, -1.22134042, 0.92426765,
      -0.849346876},
     1.05490422,
     "features.0.0.weight",
     1.12285602,
     nullptr,
     0},
};

/// For the loss above, in float64.
struct GradientGolden {
  const char* name;
  double length;   ///< L2 norm of all gradients as one vector
  double product;  ///< with numbers by formula
};

constexpr GradientGolden kGradientGoldens[] = {
    {"efficientnet_b0", 66.8366417, 17.8531166},
    {"efficientnet_b5", 529.431567, 99.0463822},
    {"mobilenet_v3_small", 8.73885155, -4.06284747},
    {"mobilenet_v3_large", 22.773071, 2.11331269},
    {"convnext_tiny", 32.5987354, 11.0320436},
    {"vit_s_16", 70.8372777, 23.2162816},
    {"resnext50_32x4d", 1666.56545, -109.384219},
    {"mobilenet_v2", 382.642003, 43.1387948},
    {"densenet121", 105.818996, 0.0219423732},
    {"regnet_y_400mf", 1446.62525, 93.3350195},
    {"regnet_x_400mf", 7929.31565, 187.826696},
    {"efficientnet_v2_s", 424.328833, 7.4708651},
    {"swin_t", 54.7088565, 14.730203},
    {"swin_v2_t", 25.61253, -0.228749712},
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
    {"mobilenet_v2", "features.0.0.weight", {0.130594462, -0.0259895828}},
    {"mobilenet_v2", "classifier.1.weight", {-0.0201242864, 0.00369820744}},
    {"regnet_y_400mf", "stem.0.weight", {0.0647572875, -0.0475569777}},
    {"regnet_y_400mf", "fc.weight", {-0.0265783407, 0.0110049639}},
    {"densenet121", "features.conv0.weight", {0.128715813, -0.0634455457}},
    {"densenet121", "classifier.weight", {0.00397336856, -0.0161542483}},
    {"swin_t", "features.0.0.weight", {0.0100812688, -0.0869480297}},
    {"swin_t", "features.1.0.attn.relative_position_bias_table", {-0.0134237502, -0.0613716282}},
    {"swin_t", "features.1.1.mlp.3.weight", {-0.0598304309, 0.0249780584}},
    {"swin_t", "head.weight", {-0.00130716874, -0.0257848781}},
    {"swin_v2_t", "features.0.0.weight", {0.0100812688, -0.0869480297}},
    {"swin_v2_t", "features.1.1.mlp.3.weight", {0.0202457327, 0.0119140111}},
    {"swin_v2_t", "head.weight", {0.0401840396, 0.00564884394}},
    {"efficientnet_v2_s", "features.0.0.weight", {0.0214833952, -0.0240093283}},
    {"efficientnet_v2_s", "classifier.1.weight", {0.369487882, 0.286905974}},
};

std::shared_ptr<ImageModel> five_classes_at_64(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  spec.num_classes = 5;
  spec.img_size = {64, 64};
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
    EXPECT_TRUE(near_golden(norm, {golden.gradient_norm}, kNormTolerance)) << golden.name << ' ' << norm;
    if (golden.last_norm == nullptr) continue;
    const torch::Tensor variances = model->named_buffers()[golden.last_norm + std::string(".running_var")].sum();
    EXPECT_TRUE(near_golden(variances, {golden.variance_sum}, kLogitTolerance)) << golden.name << ' ' << variances;
  }
}

/// In float64, where rounding flips no relu: every gradient of every parameter counts.
TEST(TorchvisionTest, LearnsTheSame) {
  for (const GradientGolden& golden : kGradientGoldens) {
    const auto model = five_classes_at_64(golden.name);
    fill_by_formula(*model);
    for (const NamedTensor& entry : state_of(*model)) {  // to() would make fractions of a Swin's index
      if (entry.tensor.is_floating_point()) torch::Tensor(entry.tensor).set_data(entry.tensor.to(torch::kDouble));
    }
    const torch::Tensor labels = torch::tensor({1, 3}, torch::kInt64);
    (cross_entropy_sum(model->forward(two_images().to(torch::kDouble)), labels, 0) / 2).backward();
    double squares = 0, product = 0;
    uint32_t stream = 0;
    for (const torch::Tensor& parameter : model->parameters()) {
      const torch::Tensor gradient = parameter.grad().flatten();
      squares += gradient.dot(gradient).item<double>();
      product += gradient.dot(uniform_numbers(gradient.numel(), stream++).to(torch::kDouble)).item<double>();
    }
    EXPECT_NEAR(std::sqrt(squares), golden.length, 1e-6 * golden.length) << golden.name;
    EXPECT_NEAR(product, golden.product, 1e-6 * golden.length) << golden.name;
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
