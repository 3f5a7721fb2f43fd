// SPDX-License-Identifier: Apache-2.0
// Low-rank fine-tuning against plain operations, and merged weights against the network that learned them.
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <map>
#include <string>

#include "core/error.h"
#include "model/freeze.h"
#include "model/low_rank.h"
#include "model/model.h"

namespace stoker::model {
namespace {

constexpr int64_t kClasses = 5, kImages = 4, kRank = 3;
constexpr double kLr = 0.002;  // a loss that rises would enlarge what rounding does

std::shared_ptr<ImageModel> network_of(const std::string& name, int64_t seed = 7) {
  torch::manual_seed(seed);
  ModelSpec spec;
  spec.name = name;
  spec.num_classes = kClasses;
  spec.img_size = {32, 32};
  std::shared_ptr<ImageModel> network = make_model(spec);
  const torch::NoGradGuard no_gradients;
  for (auto& item : network->named_parameters()) {
    const bool is_scale = item.key().find("layer_scale") != std::string::npos;  // of ConvNeXt: hides what blocks do
    if (is_scale) item.value().fill_(1);
    if (item.key().rfind(network->head_prefix(), 0) == 0) item.value().normal_(0, 0.02);  // of ViT: 0 at first
  }
  return network;
}

std::shared_ptr<ImageModel> adapted(const std::string& name) {
  std::shared_ptr<ImageModel> network = network_of(name);
  add_low_rank(*network, kRank, name);
  return network;
}

using Tensors = std::map<std::string, torch::Tensor>;

Tensors parameters_of(const torch::nn::Module& module) {
  Tensors tensors;
  for (const auto& item : module.named_parameters()) tensors[item.key()] = item.value();
  return tensors;
}

bool ends_with(const std::string& text, const std::string& ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

torch::Tensor images_of(int64_t update) {
  torch::manual_seed(100 + update);
  return at::randn({kImages, 3, 32, 32});
}

torch::Tensor loss_of(ImageModel& network, int64_t update) {
  const torch::Tensor labels = torch::arange(kImages).add(update).remainder(kClasses);
  const torch::Tensor images = images_of(update).to(network.parameters().front().scalar_type());
  return at::cross_entropy_loss(network.forward(images), labels);
}

/// Module::to() would also convert Swin's indices.
void to_double(const ImageModel& network) {
  for (const NamedTensor& entry : state_of(network)) {
    torch::Tensor tensor = entry.tensor;
    if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(torch::kDouble));
  }
}

/// An update of plain gradient descent on the parameters that learn.
void descend(torch::nn::Module& network) {
  const torch::NoGradGuard no_gradients;
  for (torch::Tensor& parameter : network.parameters()) {
    if (!parameter.grad().defined()) continue;
    parameter.sub_(parameter.grad(), kLr);
    parameter.mutable_grad().reset();
  }
}

class LowRankTest : public ::testing::TestWithParam<const char*> {};

/// The reference has no low-rank layers: its weights are W + 2 B A, and by the chain rule the gradient of B is
/// 2 G A^T and that of A is 2 B^T G, where G is that of the weight.
TEST_P(LowRankTest, LearnsAsPlainOperationsDo) {
  const int64_t updates =
      std::string(GetParam()).rfind("vit", 0) == 0 ? 20 : 2;  // in double, the others take a second each
  const std::shared_ptr<ImageModel> network = adapted(GetParam()), reference = network_of(GetParam());
  for (const auto& one : {network, reference}) to_double(*one);  // Swin V2 enlarges the rounding of float32
  const Tensors own = parameters_of(*network), theirs = parameters_of(*reference);
  Tensors base, first, second;  // by prefix
  for (const auto& [name, tensor] : own) {
    if (!ends_with(name, "lora_A")) continue;
    const std::string prefix = name.substr(0, name.size() - 6);
    base[prefix] = theirs.at(prefix + "weight").detach().clone();
    first[prefix] = tensor.detach().clone();
    second[prefix] = own.at(prefix + "lora_B").detach().clone();
    EXPECT_EQ(second[prefix].abs().max().item<double>(), 0);
  }
  ASSERT_GT(base.size(), 10u);
  for (int64_t update = 0; update < updates; ++update) {
    const torch::Tensor loss = loss_of(*network, update);
    loss.backward();
    descend(*network);

    for (const auto& [prefix, weight] : base) {
      const torch::NoGradGuard no_gradients;
      torch::Tensor there = theirs.at(prefix + "weight");
      there.copy_(weight + 2 * at::matmul(second[prefix], first[prefix]));
    }
    const torch::Tensor wanted = loss_of(*reference, update);
    wanted.backward();
    ASSERT_NEAR(loss.item<double>(), wanted.item<double>(), 1e-6) << update;
    const torch::NoGradGuard no_gradients;
    for (const auto& [name, tensor] : theirs) {
      torch::Tensor parameter = tensor;
      if (!reference->is_in_backbone(name)) parameter.sub_(parameter.grad(), kLr);
    }
    for (const auto& [prefix, weight] : base) {
      const torch::Tensor gradient = theirs.at(prefix + "weight").grad();
      const torch::Tensor of_first = 2 * at::matmul(second[prefix].t(), gradient);
      second[prefix] = second[prefix] - kLr * 2 * at::matmul(gradient, first[prefix].t());
      first[prefix] = first[prefix] - kLr * of_first;
    }
    reference->zero_grad();
  }
  double moved = 0;
  for (const auto& [prefix, weight] : base) {
    const torch::Tensor a = own.at(prefix + "lora_A").detach(), b = own.at(prefix + "lora_B").detach();
    EXPECT_LT((a - first[prefix]).abs().max().item<double>(), 1e-6) << prefix;
    EXPECT_LT((b - second[prefix]).abs().max().item<double>(), 1e-6) << prefix;
    EXPECT_TRUE(own.at(prefix + "weight").detach().equal(weight)) << prefix << " is frozen";
    moved = std::max(moved, b.abs().max().item<double>());
  }
  EXPECT_GT(moved, 1e-5);
  for (const auto& [name, tensor] : own) {
    if (network->is_in_backbone(name)) continue;
    EXPECT_LT((tensor - theirs.at(name)).abs().max().item<double>(), 1e-6) << name;
  }
}

TEST_P(LowRankTest, AMergedNetworkHasTheBitsOfTheOneThatLearned) {
  const std::shared_ptr<ImageModel> network = adapted(GetParam()), plain = network_of(GetParam(), /*seed=*/8);
  const torch::NoGradGuard no_gradients;
  for (auto& item : network->named_parameters()) {
    if (ends_with(item.key(), "lora_B")) item.value().normal_(0, 0.05);
  }
  const std::vector<NamedTensor> whole = merged(state_of(*network));
  const std::vector<NamedTensor> targets = state_of(*plain);
  ASSERT_EQ(whole.size(), targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    torch::Tensor target = targets[i].tensor;
    for (const NamedTensor& one : whole) {
      if (one.name == targets[i].name) target.copy_(one.tensor);
    }
  }
  network->eval();
  plain->eval();
  const torch::Tensor outputs = plain->forward(images_of(0));
  EXPECT_TRUE(network->forward(images_of(0)).equal(outputs));
  network->train();
  EXPECT_TRUE(network->forward(images_of(0)).allclose(outputs, 1e-4, 1e-4)) << "but for rounding";
}

TEST_P(LowRankTest, OnlySmallMatricesAndTheClassifierLearn) {
  const std::shared_ptr<ImageModel> network = adapted(GetParam());
  for (const auto& item : network->named_parameters()) {
    const bool is_small = ends_with(item.key(), "lora_A") || ends_with(item.key(), "lora_B");
    EXPECT_EQ(item.value().requires_grad(), is_small || !network->is_in_backbone(item.key())) << item.key();
  }
  EXPECT_LT(parameter_count(*network) - frozen_count(*network), parameter_count(*network) / 50);
}

INSTANTIATE_TEST_SUITE_P(Networks, LowRankTest, ::testing::Values("vit_s_16", "swin_v2_t", "convnext_tiny"));

TEST(LowRankFilesTest, WhatDoesNotFitTogetherStaysAsItIs) {
  const torch::Tensor weight = torch::ones({4, 6}), a = torch::ones({2, 6}), b = torch::ones({4, 2});
  const auto names = [](const std::vector<NamedTensor>& tensors) {
    std::string text;
    for (const NamedTensor& one : tensors) text += one.name + " ";
    return text;
  };
  const std::vector<NamedTensor> whole = merged({{"fc.lora_A", a}, {"fc.weight", weight}, {"fc.lora_B", b}});
  EXPECT_EQ(names(whole), "fc.weight ");
  EXPECT_TRUE(whole[0].tensor.equal(torch::full({4, 6}, 5.0F))) << "1 + 2 (1 + 1)";
  EXPECT_EQ(names(merged({{"fc.lora_A", a}, {"fc.weight", weight}})), "fc.lora_A fc.weight ");
  EXPECT_EQ(names(merged({{"fc.lora_A", a.t()}, {"fc.weight", weight}, {"fc.lora_B", b}})),
            "fc.lora_A fc.weight fc.lora_B ");
  EXPECT_EQ(names(merged({{"fc.lora_A", a}, {"fc.weight", weight.flatten()}, {"fc.lora_B", b}})),
            "fc.lora_A fc.weight fc.lora_B ");
}

TEST(LowRankFilesTest, ANetworkWithoutLinearLayersIsRefused) {
  const std::shared_ptr<ImageModel> network = network_of("small_cnn");
  EXPECT_THROW(add_low_rank(*network, kRank, "small_cnn"), core::Error);
}

}  // namespace
}  // namespace stoker::model
