// SPDX-License-Identifier: Apache-2.0
// Our optimizers against torch::optim's, step by step.
#include "optim/optimizer.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "optim/ema.h"
#include "optim/grad_scaler.h"

namespace stoker::optim {
namespace {

/// A 3x3 and a 1x1 convolution, a matrix, a norm's weight and one parameter that never gets a gradient.
std::vector<NamedParameter> test_parameters() {
  torch::manual_seed(11);
  std::vector<NamedParameter> parameters;
  const auto add = [&parameters](const std::string& name, at::IntArrayRef sizes) {
    parameters.push_back({name, torch::randn(sizes).requires_grad_()});
  };
  add("conv.weight", {8, 4, 3, 3});
  add("pointwise.weight", {16, 8, 1, 1});
  add("fc.weight", {10, 16});
  add("norm.weight", {16});
  add("unused.weight", {3, 3});
  return parameters;
}

/// Gradients of update number `update`: the same for every copy of the parameters.
void set_gradients(std::vector<NamedParameter>& parameters, int64_t update) {
  torch::manual_seed(100 + static_cast<uint64_t>(update));
  for (NamedParameter& parameter : parameters) {
    const torch::Tensor gradient = torch::randn(parameter.tensor.sizes());
    if (parameter.name != "unused.weight") parameter.tensor.mutable_grad() = gradient;
  }
}

std::vector<torch::Tensor> tensors_of(const std::vector<NamedParameter>& parameters, int64_t dimensions_from = 0,
                                      int64_t dimensions_to = 9) {
  std::vector<torch::Tensor> tensors;
  for (const NamedParameter& parameter : parameters) {
    if (parameter.tensor.dim() >= dimensions_from && parameter.tensor.dim() <= dimensions_to) {
      tensors.push_back(parameter.tensor);
    }
  }
  return tensors;
}

using config::OptimizerKind;
constexpr OptimizerKind kEvery[] = {OptimizerKind::sgd,     OptimizerKind::adam,  OptimizerKind::adamw,
                                    OptimizerKind::rmsprop, OptimizerKind::nadam, OptimizerKind::lion,
                                    OptimizerKind::lamb,    OptimizerKind::muon};

void expect_close(const std::vector<NamedParameter>& ours, const std::vector<NamedParameter>& theirs) {
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(torch::allclose(ours[i].tensor, theirs[i].tensor, 1e-6, 1e-6))
        << ours[i].name << " differs by " << (ours[i].tensor - theirs[i].tensor).abs().max().item<float>();
  }
}

template <typename TorchOptimizer, typename TorchOptions>
void expect_parity(const config::ResolvedOptimOptions& options, TorchOptions torch_options, double lr) {
  auto ours = test_parameters();
  auto theirs = test_parameters();
  const auto unused = theirs.back().tensor.clone();
  Optimizer optimizer(ours, options);
  TorchOptimizer reference(tensors_of(theirs), torch_options);
  for (int64_t update = 0; update < 20; ++update) {
    set_gradients(ours, update);
    set_gradients(theirs, update);
    optimizer.step(lr);
    reference.step();
  }
  expect_close(ours, theirs);
  EXPECT_TRUE(torch::equal(ours.back().tensor, unused)) << "a parameter without a gradient moved";
  EXPECT_EQ(optimizer.steps_taken(), 20);
}

config::ResolvedOptimOptions optim_options(config::OptimizerKind kind, double weight_decay) {
  config::ResolvedOptimOptions options;
  options.opt = kind;
  options.weight_decay = weight_decay;
  options.decay_norm_and_bias = true;
  return options;
}

TEST(OptimizerTest, SgdEqualsTorchs) {
  for (const double momentum : {0.0, 0.9}) {
    for (const bool nesterov : {false, true}) {
      for (const double weight_decay : {0.0, 0.05}) {
        if (nesterov && momentum == 0) continue;
        auto options = optim_options(config::OptimizerKind::sgd, weight_decay);
        options.momentum = momentum;
        options.nesterov = nesterov;
        expect_parity<torch::optim::SGD>(
            options, torch::optim::SGDOptions(0.05).momentum(momentum).nesterov(nesterov).weight_decay(weight_decay),
            0.05);
      }
    }
  }
}

TEST(OptimizerTest, AdamEqualsTorchs) {
  for (const double weight_decay : {0.0, 0.05}) {
    auto options = optim_options(config::OptimizerKind::adam, weight_decay);
    options.beta1 = 0.8;
    options.beta2 = 0.95;
    options.eps = 1e-6;
    expect_parity<torch::optim::Adam>(
        options, torch::optim::AdamOptions(0.01).betas(std::make_tuple(0.8, 0.95)).eps(1e-6).weight_decay(weight_decay),
        0.01);
  }
}

TEST(OptimizerTest, AdamWEqualsTorchs) {
  for (const double weight_decay : {0.0, 0.5}) {
    expect_parity<torch::optim::AdamW>(optim_options(config::OptimizerKind::adamw, weight_decay),
                                       torch::optim::AdamWOptions(0.01).weight_decay(weight_decay), 0.01);
  }
}

TEST(OptimizerTest, RmspropEqualsTorchs) {
  for (const double momentum : {0.0, 0.9}) {
    for (const double weight_decay : {0.0, 0.05}) {
      auto options = optim_options(config::OptimizerKind::rmsprop, weight_decay);
      options.momentum = momentum;
      options.beta2 = 0.95;
      options.eps = 1e-3;
      expect_parity<torch::optim::RMSprop>(
          options,
          torch::optim::RMSpropOptions(0.001).alpha(0.95).eps(1e-3).momentum(momentum).weight_decay(weight_decay),
          0.001);
    }
  }
}

/// A weight that starts at 1 in 12 updates of one cycle; update t has the gradient weight + cos(t).
void expect_one_cycle(const config::ResolvedOptimOptions& options, const std::vector<double>& golden) {
  config::ResolvedScheduleOptions one_cycle;
  one_cycle.sched = config::ScheduleKind::one_cycle;
  const Schedule schedule(one_cycle, 0.1, 12, 1);
  const NamedParameter parameter{"weight", torch::ones({1}).requires_grad_()};
  Optimizer optimizer({parameter}, options);
  for (int64_t update = 0; update < 12; ++update) {
    parameter.tensor.mutable_grad() = parameter.tensor.detach() + std::cos(static_cast<double>(update));
    optimizer.step(schedule.rates_at(update));
    EXPECT_NEAR(parameter.tensor.item<float>(), golden[static_cast<size_t>(update)], 2e-6) << update;
  }
}

TEST(OptimizerTest, OneCycleTrainsAsTorchsOneCycleLR) {  // numbers of scripts/parity/schedule_golden.py
  expect_one_cycle(optim_options(config::OptimizerKind::sgd, 0),
                   {0.98439997, 0.82320201, 0.53670907, 0.38232645, 0.26784581, 0.077014536, -0.15464438, -0.31588989,
                    -0.36758554, -0.36359623, -0.35874376, -0.3587434});
  expect_one_cycle(optim_options(config::OptimizerKind::adamw, 0.05),
                   {0.99580002, 0.9669342, 0.91921127, 0.88006532, 0.84370553, 0.79887307, 0.75158077, 0.71141243,
                    0.68419516, 0.67089003, 0.66734034, 0.66733992});
}

TEST(OptimizerTest, RefusesAMomentumThatItHasNoRoomFor) {
  auto options = optim_options(config::OptimizerKind::sgd, 0);
  options.momentum = 0;
  options.nesterov = false;
  auto parameters = test_parameters();
  Optimizer optimizer(parameters, options);
  set_gradients(parameters, 0);
  EXPECT_THROW(optimizer.step({0.1, 0.9}), core::Error);
}

TEST(OptimizerTest, NormsAndBiasesDoNotDecayByDefault) {
  auto ours = test_parameters();
  auto theirs = test_parameters();
  auto options = optim_options(config::OptimizerKind::sgd, 0.1);
  options.decay_norm_and_bias = false;
  Optimizer optimizer(ours, options);
  const auto torch_options = torch::optim::SGDOptions(0.05).momentum(0.9).nesterov(true);
  torch::optim::SGD decayed(tensors_of(theirs, 2), torch::optim::SGDOptions(torch_options).weight_decay(0.1));
  torch::optim::SGD kept(tensors_of(theirs, 0, 1), torch_options);
  for (int64_t update = 0; update < 5; ++update) {
    set_gradients(ours, update);
    set_gradients(theirs, update);
    optimizer.step(0.05);
    decayed.step();
    kept.step();
  }
  expect_close(ours, theirs);
}

TEST(OptimizerTest, LayoutOfParametersAndGradientsDoesNotMatter) {
  for (const auto kind : {config::OptimizerKind::sgd, config::OptimizerKind::adamw}) {
    auto plain = test_parameters();
    auto channels_last = test_parameters();
    for (NamedParameter& parameter : channels_last) {
      if (parameter.tensor.dim() != 4) continue;
      parameter.tensor.set_data(parameter.tensor.detach().contiguous(torch::MemoryFormat::ChannelsLast));
    }
    Optimizer first(plain, optim_options(kind, 0.05));
    Optimizer second(channels_last, optim_options(kind, 0.05));
    for (int64_t update = 0; update < 3; ++update) {
      set_gradients(plain, update);
      set_gradients(channels_last, update);  // contiguous gradients for channels-last parameters
      first.step(0.05);
      second.step(0.05);
    }
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(torch::equal(plain[i].tensor, channels_last[i].tensor)) << plain[i].name;
    }
    EXPECT_EQ(second.state()[0].tensor.strides(), channels_last[0].tensor.strides());
  }
}

TEST(OptimizerTest, FoundInfSkipsTheStepAndDoesNotCountIt) {
  for (const auto kind : kEvery) {
    auto skipping = test_parameters();
    auto plain = test_parameters();
    Optimizer first(skipping, optim_options(kind, 0.05));
    Optimizer second(plain, optim_options(kind, 0.05));
    for (int64_t update = 0; update < 4; ++update) {
      set_gradients(skipping, 50);
      skipping[0].tensor.mutable_grad().fill_(std::numeric_limits<float>::infinity());
      first.step(0.05, torch::ones({1}));
      set_gradients(skipping, update);
      set_gradients(plain, update);
      first.step(0.05, torch::zeros({1}));
      second.step(0.05);
    }
    EXPECT_EQ(first.steps_taken(), 4);
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(torch::equal(skipping[i].tensor, plain[i].tensor));
  }
}

TEST(OptimizerTest, StateHasOneNameAndOrderBeforeAndAfterTraining) {
  auto parameters = test_parameters();
  Optimizer optimizer(parameters, optim_options(config::OptimizerKind::adam, 0));
  const auto names = [&optimizer] {
    std::vector<std::string> all;
    for (const NamedState& item : optimizer.state()) all.push_back(item.name);
    return all;
  };
  const std::vector<std::string> before = names();
  ASSERT_EQ(before.size(), 10U);
  EXPECT_EQ(before[0], "exp_avg.conv.weight");
  EXPECT_EQ(before[1], "exp_avg_sq.conv.weight");
  EXPECT_EQ(before[9], "exp_avg_sq.unused.weight");
  set_gradients(parameters, 0);
  optimizer.step(0.1);
  EXPECT_EQ(names(), before);
}

TEST(OptimizerTest, SgdStateIsTheMomentumAndNothingWithoutIt) {
  auto options = optim_options(config::OptimizerKind::sgd, 0);
  Optimizer with(test_parameters(), options);
  ASSERT_EQ(with.state().size(), 5U);
  EXPECT_EQ(with.state()[2].name, "momentum.fc.weight");
  EXPECT_EQ(with.state()[2].tensor.abs().sum().item<float>(), 0);
  EXPECT_FALSE(with.state()[2].tensor.requires_grad());
  options.momentum = 0;
  EXPECT_TRUE(Optimizer(test_parameters(), options).state().empty());
}

TEST(OptimizerTest, TheStateOfEachIsNamedAfterWhatItHolds) {
  const std::pair<OptimizerKind, std::vector<std::string>> kStates[] = {
      {OptimizerKind::rmsprop, {"momentum.fc.weight", "square_avg.fc.weight", "momentum.norm.weight"}},
      {OptimizerKind::nadam, {"exp_avg.fc.weight", "exp_avg_sq.fc.weight", "exp_avg.norm.weight"}},
      {OptimizerKind::lion, {"exp_avg.fc.weight", "exp_avg.norm.weight", "exp_avg.unused.weight"}},
      {OptimizerKind::lamb, {"exp_avg.fc.weight", "exp_avg_sq.fc.weight", "exp_avg.norm.weight"}},
      {OptimizerKind::muon, {"momentum.fc.weight", "exp_avg.norm.weight", "exp_avg_sq.norm.weight"}}};
  for (const auto& [kind, wanted] : kStates) {
    auto parameters = test_parameters();
    const auto options = optim_options(kind, 0);
    Optimizer optimizer(parameters, options);
    std::vector<std::string> names;
    for (const NamedState& item : optimizer.state()) names.push_back(item.name);
    const auto first = std::find(names.begin(), names.end(), wanted.front());
    ASSERT_GE(names.end() - first, 3) << static_cast<int>(kind);
    EXPECT_EQ(std::vector<std::string>(first, first + 3), wanted);
    int planned = 0;
    for (const NamedParameter& parameter : parameters) planned += states_of(parameter, options);
    EXPECT_EQ(static_cast<size_t>(planned), names.size()) << static_cast<int>(kind);
  }
}

TEST(OptimizerTest, RestoredStateContinuesBitForBit) {
  for (const auto kind : kEvery) {
    auto original = test_parameters();
    Optimizer first(original, optim_options(kind, 0.05));
    for (int64_t update = 0; update < 3; ++update) {
      set_gradients(original, update);
      first.step(0.05);
    }
    auto copy = test_parameters();
    Optimizer second(copy, optim_options(kind, 0.05));
    {
      torch::NoGradGuard no_grad;
      for (size_t i = 0; i < copy.size(); ++i) copy[i].tensor.copy_(original[i].tensor);
      auto target = second.state();
      const auto source = first.state();
      for (size_t i = 0; i < source.size(); ++i) target[i].tensor.copy_(source[i].tensor);
    }
    second.set_steps_taken(first.steps_taken());
    for (int64_t update = 3; update < 6; ++update) {
      set_gradients(original, update);
      set_gradients(copy, update);
      first.step(0.05);
      second.step(0.05);
    }
    for (size_t i = 0; i < copy.size(); ++i) EXPECT_TRUE(torch::equal(copy[i].tensor, original[i].tensor));
  }
}

TEST(OptimizerTest, AParameterThatWasThawedLaterMovesAsInItsFirstSteps) {
  for (const auto kind : {config::OptimizerKind::adam, config::OptimizerKind::adamw, config::OptimizerKind::nadam,
                          config::OptimizerKind::lamb}) {
    auto mixed = test_parameters(), fresh = test_parameters(), old = test_parameters();
    Optimizer of_mixed(mixed, optim_options(kind, 0.05)), of_fresh(fresh, optim_options(kind, 0.05));
    Optimizer of_old(old, optim_options(kind, 0.05));
    of_mixed.set_steps_taken(1000, {{mixed[1].name, 1000}});
    of_old.set_steps_taken(1000);
    for (int64_t update = 0; update < 3; ++update) {
      for (auto* parameters : {&mixed, &fresh, &old}) set_gradients(*parameters, update);
      for (Optimizer* optimizer : {&of_mixed, &of_fresh, &of_old}) optimizer->step(0.1);
    }
    for (size_t i = 0; i < mixed.size(); ++i) {
      EXPECT_TRUE(torch::equal(mixed[i].tensor, (i == 1 ? fresh : old)[i].tensor)) << mixed[i].name;
    }
    EXPECT_FALSE(torch::equal(mixed[1].tensor, old[1].tensor));
    EXPECT_EQ(of_mixed.begun_at(), (std::map<std::string, int64_t>{{mixed[1].name, 1000}}));
  }
}

TEST(OptimizerTest, WhatThawsMovesAsIfTheOptimizerBeganThere) {
  for (const auto kind : kEvery) {
    for (const bool is_plain : {false, true}) {
      auto all = test_parameters(), late = test_parameters();
      for (size_t i = 0; i < all.size(); i += 2) all[i].thaws = true;
      Optimizer of_all(all, optim_options(kind, 0.05)), of_late(late, optim_options(kind, 0.05));
      if (is_plain) of_all.use_plain_kernels();
      if (is_plain) of_late.use_plain_kernels();
      for (int64_t update = 0; update < 5; ++update) {
        set_gradients(all, update);
        set_gradients(late, update);
        for (NamedParameter& parameter : all) {
          if (parameter.thaws && update < 3) parameter.tensor.mutable_grad().reset();
        }
        if (update == 3) of_all.thaw();
        of_all.step(0.05);
        if (update >= 3) of_late.step(0.05);
      }
      for (size_t i = 0; i < all.size(); i += 2)
        EXPECT_TRUE(torch::equal(all[i].tensor, late[i].tensor)) << all[i].name;
    }
  }
}

TEST(OptimizerTest, AParameterWithAShareOfTheLearningRateMovesAsWithThatRate) {
  for (const auto kind : kEvery) {
    auto mixed = test_parameters(), whole = test_parameters(), quarter = test_parameters();
    for (size_t i = 0; i < mixed.size(); i += 2) mixed[i].lr_scale = 0.25;
    Optimizer of_mixed(mixed, optim_options(kind, 0.05)), of_whole(whole, optim_options(kind, 0.05));
    Optimizer of_quarter(quarter, optim_options(kind, 0.05));
    for (int64_t update = 0; update < 3; ++update) {
      for (auto* parameters : {&mixed, &whole, &quarter}) set_gradients(*parameters, update);
      of_mixed.step(0.1);
      of_whole.step(0.1);
      of_quarter.step(0.025);
    }
    for (size_t i = 0; i < mixed.size(); ++i) {
      EXPECT_TRUE(torch::equal(mixed[i].tensor, (i % 2 == 0 ? quarter : whole)[i].tensor)) << mixed[i].name;
    }
    EXPECT_EQ(of_mixed.state()[1].name, of_whole.state()[1].name);
  }
}

TEST(OptimizerTest, ZeroGradFreesTheGradients) {
  auto parameters = test_parameters();
  Optimizer optimizer(parameters, optim_options(config::OptimizerKind::sgd, 0));
  set_gradients(parameters, 0);
  EXPECT_EQ(optimizer.gradients().size(), 4U);
  optimizer.zero_grad();
  EXPECT_TRUE(optimizer.gradients().empty());
  EXPECT_FALSE(parameters[0].tensor.grad().defined());
}

TEST(OptimizerTest, ResultDoesNotDependOnTheNumberOfThreads) {
  const int threads_before = at::get_num_threads();
  std::vector<torch::Tensor> results;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    torch::manual_seed(5);
    NamedParameter large{"large", torch::randn({300, 1000}).requires_grad_()};
    large.tensor.mutable_grad() = torch::randn({300, 1000});
    Optimizer optimizer({large}, optim_options(config::OptimizerKind::adamw, 0.05));
    for (int update = 0; update < 3; ++update) optimizer.step(0.01);
    results.push_back(large.tensor);
  }
  at::set_num_threads(threads_before);
  EXPECT_TRUE(torch::equal(results[0], results[1]));
}

/// A 1x1 convolution in channels-last: its weight and cuDNN's gradient of it differ in strides that are never used.
TEST(OptimizerTest, AGradientIsHandedOverWithTheStridesOfItsWeight) {
  torch::Tensor weight = torch::arange(12, torch::kFloat32).view({4, 3, 1, 1});
  const torch::Tensor like = weight.as_strided({4, 3, 1, 1}, {3, 1, 1, 1});
  const torch::Tensor gradient = weight.as_strided({4, 3, 1, 1}, {3, 1, 3, 3});
  const torch::Tensor handed = with_layout_of(like, gradient);
  EXPECT_EQ(handed.strides(), like.strides());
  EXPECT_EQ(handed.data_ptr(), gradient.data_ptr()) << "nothing is copied";
  EXPECT_TRUE(handed.equal(gradient));
}

}  // namespace
}  // namespace stoker::optim
