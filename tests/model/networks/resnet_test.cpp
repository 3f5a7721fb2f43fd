// SPDX-License-Identifier: Apache-2.0
// ResNets against torchvision's. Golden numbers: scripts/parity/resnet_golden.py with torchvision 0.14,
// torch 1.13.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include "model/loss.h"
#include "model/model.h"
#include "tests/model/deterministic_fill.h"

namespace stoker::model {
namespace {

/// Many test processes run side by side; waiting threads of a pool would take each other's processors.
const bool kOnOneThread = (at::set_num_threads(1), true);

constexpr double kGoldenTolerance = 2e-4;  // of the largest number; float32 sums in another order

struct ResNetGolden {
  const char* name;
  size_t tensors;
  int64_t parameters;
  uint64_t names;
};

constexpr ResNetGolden kResNetGoldens[] = {
    {"resnet18", 122, 11689512, 0x8a918f0ea0696540U},  {"resnet34", 218, 21797672, 0x835ef316b5bd4a32U},
    {"resnet50", 320, 25557032, 0x5530088451a0f234U},  {"resnet101", 626, 44549160, 0xad2df314cf2ac827U},
    {"resnet152", 932, 60192808, 0xa6915e99c6d30adaU},
};

std::shared_ptr<ImageModel> five_class_model(const std::string& name, bool zero_init_residual = false) {
  ModelSpec spec;
  spec.name = name;
  spec.num_classes = 5;
  spec.zero_init_residual = zero_init_residual;
  return make_model(spec);
}

torch::Tensor golden_images() { return uniform_numbers(2 * 3 * 64 * 64, 999).reshape({2, 3, 64, 64}) * 2; }

void expect_golden(const std::string& name, const std::vector<double>& logits, double train_loss, double gradient_norm,
                   double variance_sum) {
  const auto model = five_class_model(name);
  fill_by_formula(*model);
  model->eval();
  EXPECT_TRUE(near_golden(model->forward(golden_images()), logits, kGoldenTolerance)) << name;

  model->train();
  const torch::Tensor labels = torch::tensor({1, 3}, torch::kInt64);
  const torch::Tensor loss = cross_entropy_sum(model->forward(golden_images()), labels, 0) / 2;
  loss.backward();
  EXPECT_TRUE(near_golden(loss, {train_loss}, kGoldenTolerance)) << name << ' ' << loss;
  const torch::Tensor norm = model->named_parameters()["conv1.weight"].grad().norm();
  EXPECT_TRUE(near_golden(norm, {gradient_norm}, 2e-3)) << name << ' ' << norm;
  const torch::Tensor variances = model->named_buffers()["layer4.0.bn1.running_var"].sum();
  EXPECT_TRUE(near_golden(variances, {variance_sum}, kGoldenTolerance)) << name << ' ' << variances;
}

TEST(ResNetTest, HasTorchvisionsNamesShapesAndParameterCounts) {
  ASSERT_TRUE(kOnOneThread);
  for (const ResNetGolden& golden : kResNetGoldens) {
    ModelSpec spec;
    spec.name = golden.name;
    const auto model = make_model(spec);
    EXPECT_EQ(state_of(*model).size(), golden.tensors) << golden.name;
    EXPECT_EQ(parameter_count(*model), golden.parameters) << golden.name;
    EXPECT_EQ(names_hash(*model), golden.names) << golden.name;
  }
}

TEST(ResNetTest, ComputesWhatTorchvisionsResNet18Does) {
  expect_golden("resnet18",
                {9.8061924, 15.485218, 14.6743498, 40.6822777, 10.2449121, 3.65803909, 18.5314674, 10.6154318,
                 41.7646179, 14.211688},
                1.50980496, 23.7737904, 547.85553);
}

TEST(ResNetTest, ComputesWhatTorchvisionsResNet34Does) {
  expect_golden("resnet34",
                {-191.917404, -486.634735, -751.808472, -75.5777817, -631.170227, -152.329575, -500.004547, -746.392273,
                 -140.077774, -649.626831},
                1.95059109, 82.0166779, 695.052795);
}

TEST(ResNetTest, ComputesWhatTorchvisionsResNet50Does) {
  expect_golden("resnet50",
                {-88.8757172, 692.14093, -457.972473, -949.360046, 1146.43579, -36.3799973, 626.013733, -489.375,
                 -977.972778, 1116.89966},
                2.22824192, 1021.94244, 729.807495);
}

TEST(ResNetTest, DrawsTorchvisionsFirstWeightsForASeed) {
  torch::manual_seed(7);
  const auto model = five_class_model("resnet18");
  auto parameters = model->named_parameters();
  EXPECT_TRUE(near_golden(parameters["conv1.weight"].flatten().slice(0, 0, 3),
                          {0.0191308111, 0.0211441852, 0.00515774125}, 1e-4));
  EXPECT_TRUE(near_golden(parameters["layer2.0.downsample.0.weight"].flatten().slice(0, 0, 2),
                          {0.262380838, 0.0978594273}, 1e-4));
  EXPECT_TRUE(near_golden(parameters["fc.weight"].flatten().slice(0, 0, 2), {-0.0173849743, -0.0344467349}, 1e-4));
}

TEST(ResNetTest, ZeroInitResidualStartsEveryBlockAsItsShortcut) {
  for (const char* name : {"resnet18", "resnet50"}) {
    auto parameters = five_class_model(name, true)->named_parameters();
    const std::string last = std::string(name) == "resnet18" ? "bn2" : "bn3";
    for (const char* block : {"layer1.0.", "layer1.1.", "layer4.1."}) {
      EXPECT_EQ(parameters[block + last + ".weight"].abs().max().item<float>(), 0) << name << block;
      EXPECT_EQ(parameters[std::string(block) + "bn1.weight"].min().item<float>(), 1) << name << block;
    }
  }
}

TEST(ResNetTest, TakesAnyNumberOfChannels) {
  ModelSpec spec;
  spec.name = "resnet18";
  spec.in_chans = 1;
  spec.num_classes = 7;
  const auto model = make_model(spec);
  EXPECT_EQ(model->forward(torch::zeros({2, 1, 40, 56})).sizes(), (std::vector<int64_t>{2, 7}));
  EXPECT_EQ(model->head_prefix(), "fc.");
}

}  // namespace
}  // namespace stoker::model
