// SPDX-License-Identifier: Apache-2.0
// Batch norm over a batch whose parts several ranks hold, and its statistics after the last update.
#include <ATen/ops/allclose.h>

#include "model/freeze.h"
#include "model/layers/batch_norm.h"
#include "model/model.h"
#include "tests/engine/step/replica_run.h"

namespace stoker::engine {
namespace {

/// Results of a pass over a part, or over all of it.
struct Passed {
  at::Tensor outputs, input_gradient;
  std::vector<at::Tensor> gradients, buffers;
};

Passed pass(model::ImageModel& network, const at::Tensor& images, const at::Tensor& weights) {
  Passed passed;
  const at::Tensor input = images.clone().requires_grad_();
  passed.outputs = network.forward(input);
  (passed.outputs * weights).sum().backward();
  passed.input_gradient = input.grad();
  for (const at::Tensor& parameter : network.parameters()) passed.gradients.push_back(parameter.grad());
  for (const at::Tensor& buffer : network.buffers()) passed.buffers.push_back(buffer.clone());
  return passed;
}

std::shared_ptr<model::ImageModel> doubles(const std::string& name) {
  torch::manual_seed(5);
  model::ModelSpec spec;
  spec.name = name;
  spec.num_classes = 4;
  spec.width = 8;
  auto network = model::make_model(spec);
  network->to(at::kDouble);
  network->train();
  return network;
}

void expect_near(const at::Tensor& ours, const at::Tensor& theirs, const std::string& what) {
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-8, 1e-10)) << what << ": " << (ours - theirs).abs().max().item<double>();
}

/// Parts of these sizes, one on each rank; 0: a stand-in is computed there.
void expect_one_batch(const std::string& name, const std::vector<int64_t>& sizes) {
  int64_t total = 0;
  for (const int64_t size : sizes) total += size;
  torch::manual_seed(9);
  const at::Tensor images = at::randn({total, 3, 32, 32}, at::kDouble) * 2 + 50,
                   weights = at::randn({total, 4}, at::kDouble);
  const Passed whole = pass(*doubles(name), images, weights);
  std::vector<Passed> parts(sizes.size());
  const auto thrown = run_ranks(static_cast<int>(sizes.size()), [&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    int64_t begin = 0;
    for (size_t i = 0; i < rank; ++i) begin += sizes[i];
    const bool has_images = sizes[rank] > 0;
    const model::SharedBatch shared{group.rank(), group.size(), has_images,
                                    [&](const at::Tensor& part) { group.sum({part}); }};
    std::shared_ptr<model::ImageModel> network;
    {
      static std::mutex one_at_a_time;  // initial weights are drawn from one generator
      const std::lock_guard<std::mutex> lock(one_at_a_time);
      network = doubles(name);
    }
    const model::SharedBatchScope scope(&shared);
    parts[rank] = has_images
                      ? pass(*network, images.narrow(0, begin, sizes[rank]), weights.narrow(0, begin, sizes[rank]))
                      : pass(*network, at::zeros({1, 3, 32, 32}, at::kDouble), at::zeros({1, 4}, at::kDouble));
  });
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
  std::vector<at::Tensor> outputs, inputs;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 0) outputs.push_back(parts[i].outputs);
    if (sizes[i] > 0) inputs.push_back(parts[i].input_gradient);
    for (size_t k = 0; k < whole.buffers.size(); ++k) expect_near(parts[i].buffers[k], whole.buffers[k], "a buffer");
  }
  expect_near(at::cat(outputs), whole.outputs, "outputs");
  expect_near(at::cat(inputs), whole.input_gradient, "gradient of the images");
  for (size_t k = 0; k < whole.gradients.size(); ++k) {
    at::Tensor sum = at::zeros_like(whole.gradients[k]);
    for (const Passed& part : parts) sum += part.gradients[k];
    expect_near(sum, whole.gradients[k], "gradient " + std::to_string(k));
  }
}

TEST(SharedNormTest, PartsOnSeveralRanksAreOneBatchInDoubles) {
  expect_one_batch("small_cnn", {4, 4});
  expect_one_batch("small_cnn", {1, 5, 2});
  expect_one_batch("small_cnn", {3, 0, 4});
  expect_one_batch("resnet18", {3, 2});
  expect_one_batch("mobilenet_v3_small", {3, 2});
}

/// A batch norm that updates share, before a classifier.
class Normed : public model::ImageModel {
 public:
  Normed() {
    norm_ = register_module("norm", torch::nn::BatchNorm2d(1));
    fc_ = register_module("fc", torch::nn::Linear(16, kClasses));
  }
  at::Tensor forward(at::Tensor images) override { return fc_(at::relu(model::normalise(*norm_, images)).flatten(1)); }
  std::string head_prefix() const override { return "fc."; }

 private:
  torch::nn::BatchNorm2d norm_{nullptr};
  torch::nn::Linear fc_{nullptr};
};

/// The state of all ranks at the end; `shares`: --sync-bn.
std::vector<at::Tensor> trained_with_norms(int ranks, int64_t batches, const std::vector<int64_t>& empty, bool shares) {
  std::vector<at::Tensor> states(static_cast<size_t>(ranks));
  const auto thrown = run_ranks(ranks, [&](Group& group) {
    Learner learner;
    learner.model = std::make_shared<Normed>();
    std::vector<optim::NamedParameter> parameters;
    const at::NoGradGuard no_gradients;
    for (const auto& item : learner.model->named_parameters()) {
      at::Tensor tensor = item.value();
      tensor.copy_(at::linspace(-1, 1, tensor.numel()).view(tensor.sizes()));
      parameters.push_back({item.key(), tensor});
    }
    learner.optimizer = std::make_unique<optim::Optimizer>(parameters, config::ResolvedOptimOptions());
    learner.scaler = std::make_unique<optim::GradScaler>(optim::GradScalerSettings{}, torch::kCPU);
    const torch::AutoGradMode with_gradients(true);
    const MadeBatches made(batches, empty);
    const EpochPlan plan{batches * kImagesPerBatch, kImagesPerBatch, batches, /*accumulation=*/1, ranks};
    ShardedFeed feed(made, own_batches(plan, share_of(group)));
    TaskSpec spec;
    spec.num_classes = kClasses;
    const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
    UpdaterSettings settings;
    settings.shares_norms = shares;
    Updater updater(settings, *task, learner, /*timer=*/nullptr, group);
    learner.model->train();
    for (int64_t i = 0; i < plan.updates(); ++i) updater.update(feed, plan.window(0, i), 0.1);
    states[static_cast<size_t>(group.rank())] = state_of(learner);
  });
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
  return states;
}

TEST(SharedNormTest, ARankWithoutImagesTakesPartInUpdatesAndAllRanksEndAlike) {
  for (const int64_t batches : {12, 11}) {  // the last update is short
    for (const std::vector<int64_t>& empty : {std::vector<int64_t>{}, {3}, {2, 3}, {4, 7}}) {
      const auto states = trained_with_norms(2, batches, empty, /*shares=*/true);
      EXPECT_TRUE(at::equal(states[0], states[1]));
      EXPECT_TRUE(states[0].isfinite().all().item<bool>());
      EXPECT_FALSE(at::equal(states[0], trained_with_norms(2, batches, empty, /*shares=*/false)[0]));
    }
  }
}

TEST(SharedNormTest, MeasuredStatisticsAreTheMeanOverBatchesForAnyNumberOfRanks) {
  const MadeBatches made(8);
  const auto measured = [&](Group& group) {
    Learner learner;
    learner.model = std::make_shared<Normed>();
    std::vector<optim::NamedParameter> parameters;
    for (const auto& item : learner.model->named_parameters()) parameters.push_back({item.key(), item.value()});
    learner.optimizer = std::make_unique<optim::Optimizer>(parameters, config::ResolvedOptimOptions());
    learner.scaler = std::make_unique<optim::GradScaler>(optim::GradScalerSettings{}, torch::kCPU);
    learner.model->buffers()[0].fill_(7);  // of training
    const EpochPlan plan{8 * kImagesPerBatch, kImagesPerBatch, 8, /*accumulation=*/2, /*replicas=*/2};
    ShardedFeed feed(made, own_batches(plan, share_of(group)));
    TaskSpec spec;
    spec.num_classes = kClasses;
    const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
    Updater updater(UpdaterSettings{}, *task, learner, /*timer=*/nullptr, group);
    learner.model->train();
    updater.measure_statistics(feed, statistics_windows(plan, /*epoch=*/0, /*images=*/48));
    EXPECT_EQ(learner.statistics_before.at(0).name, "statistics.norm.running_mean");
    EXPECT_EQ(learner.statistics_before.at(0).tensor.item<float>(), 7);
    return at::cat({learner.model->buffers()[0], learner.model->buffers()[1]});
  };
  const at::Tensor alone_state = measured(alone());
  double mean = 0, variance = 0;
  for (const data::Batch& batch : made.batches) {
    mean += batch.images.mean().item<double>() / 8;
    variance += batch.images.var(/*unbiased=*/true).item<double>() / 8;
  }
  EXPECT_NEAR(alone_state[0].item<double>(), mean, 1e-6);
  EXPECT_NEAR(alone_state[1].item<double>(), variance, 1e-6);
  const auto thrown = run_ranks(2, [&](Group& group) { EXPECT_TRUE(at::equal(measured(group), alone_state)); });
  for (const std::exception_ptr& one : thrown) EXPECT_FALSE(one);
}

TEST(SharedNormTest, WhatIsFrozenForATimeMovesFromItsUpdateOn) {
  at::Tensor states[2];
  for (const bool stops : {false, true}) {
    Learner learner = made_learner();
    std::vector<optim::NamedParameter> parameters = learner.optimizer->parameters();
    for (optim::NamedParameter& parameter : parameters) parameter.thaws = parameter.name.rfind("fc.", 0) != 0;
    config::ResolvedOptimOptions options;
    options.opt = config::OptimizerKind::adamw;
    learner.optimizer = std::make_unique<optim::Optimizer>(parameters, options);
    const Computed setup{/*replicas=*/2};
    const MadeBatches made(setup.batches);
    ShardedFeed feed(made, own_batches(setup.plan(), {}));
    TaskSpec spec;
    spec.num_classes = kClasses;
    const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
    UpdaterSettings settings;
    settings.thaws_at = 3;
    std::optional<Updater> updater;
    const at::Tensor weight = learner.model->named_parameters()["hidden.weight"];
    const at::Tensor mean = learner.model->named_buffers()["norm.running_mean"];
    const at::Tensor weight_before = weight.clone(), mean_before = mean.clone();
    learner.model->train();
    for (int64_t i = 0; i < 8; ++i) {
      if (i == 0 || stops) updater.emplace(settings, *task, learner);  // each update in a process of its own
      updater->update(feed, setup.plan().window(0, i), 0.01);
      EXPECT_EQ(at::equal(weight, weight_before), i < 3) << i;
      EXPECT_EQ(at::equal(mean, mean_before), i < 3) << i;
      for (const auto& [name, steps] : learner.optimizer->begun_at()) EXPECT_EQ(steps, 3) << name << " " << i;
      EXPECT_EQ(learner.optimizer->begun_at().empty(), i < 3) << i;
      if (!stops) continue;
      for (const optim::NamedParameter& parameter : learner.optimizer->parameters()) {
        at::Tensor tensor = parameter.tensor;
        tensor.set_requires_grad(true);  // as a process builds it
      }
      model::rest_frozen_norms(*learner.model);
      learner.model->train();
    }
    states[stops ? 1 : 0] = state_of(learner);
  }
  EXPECT_TRUE(at::equal(states[0], states[1]));
}

}  // namespace
}  // namespace stoker::engine
