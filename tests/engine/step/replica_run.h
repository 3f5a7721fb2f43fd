// SPDX-License-Identifier: Apache-2.0
// Replicas of one small network that train by real updates, for tests, on ranks, which are threads here.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "core/error.h"
#include "engine/step/updater.h"
#include "model/layers/drop_path.h"
#include "model/layers/random_source.h"
#include "tests/engine/group/thread_group.h"

namespace stoker::engine {

inline constexpr int64_t kClasses = 4, kImagesPerBatch = 6;

/// Access of a test to the network of a learner.
struct Watched {
  std::mutex mutex;
  std::map<float, float> drawn;  ///< by the first number that a pass sees, the first one that it draws
  int64_t passes = 0;
  int64_t tight_pass = -1;  ///< in which memory runs out
  std::function<void(int64_t pass)> on_pass;
};

/// With batch norm, so that what one replica sees another must not; and with dropout.
class TwoLayers : public model::ImageModel {
 public:
  explicit TwoLayers(std::shared_ptr<Watched> watched) : watched_(std::move(watched)) {
    hidden_ = register_module("hidden", torch::nn::Linear(16, 8));
    norm_ = register_module("norm", torch::nn::BatchNorm1d(8));
    fc_ = register_module("fc", torch::nn::Linear(8, kClasses));
  }
  torch::Tensor forward(torch::Tensor images) override {
    note(images);
    return fc_(model::drop_out(at::relu(norm_(hidden_(images.flatten(1)))), 0.1, is_training()));
  }
  std::string head_prefix() const override { return "fc."; }

 private:
  void note(const torch::Tensor& images) {
    const float number = model::random_source().defined()
                             ? at::rand({1}, model::random_source(), at::kFloat).item<float>()
                             : at::rand({1}).item<float>();
    std::unique_lock<std::mutex> lock(watched_->mutex);
    const int64_t pass = watched_->passes++;
    if (pass == watched_->tight_pass) throw std::bad_alloc();
    watched_->drawn[images.flatten()[0].item<float>()] = number;
    lock.unlock();
    if (watched_->on_pass) watched_->on_pass(pass);
  }

  const std::shared_ptr<Watched> watched_;
  torch::nn::Linear hidden_{nullptr}, fc_{nullptr};
  torch::nn::BatchNorm1d norm_{nullptr};
};

/// The batches of all updates, in order; those at `empty` lost all of their images.
struct MadeBatches {
  explicit MadeBatches(int64_t count, std::vector<int64_t> empty = {}) {
    const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(7);
    for (int64_t i = 0; i < count; ++i) {
      const bool is_empty = std::find(empty.begin(), empty.end(), i) != empty.end();
      data::Batch batch;
      batch.images =
          at::randn({kImagesPerBatch, 1, 4, 4}, random, at::kFloat).slice(0, 0, is_empty ? 0 : kImagesPerBatch);
      batch.labels = at::arange(batch.images.size(0), at::kLong).add(i).remainder(kClasses);
      batch.planned_images = kImagesPerBatch;
      batches.push_back(batch);
    }
  }
  std::vector<data::Batch> batches;
};

/// Those of them that a rank computes, in its order.
class ShardedFeed : public BatchFeed {
 public:
  ShardedFeed(const MadeBatches& made, std::vector<int64_t> own) : made_(made), own_(std::move(own)) {}
  data::Batch next(bool) override {
    if (own_.at(next_) == fails_at) throw core::Error(core::ErrorKind::data, "image 7 is torn in two");
    return made_.batches.at(static_cast<size_t>(own_[next_++]));
  }
  void rewind_to(const UpdateWindow& window) override {
    next_ = 0;
    while (own_.at(next_) < window.first_batch) ++next_;
  }

  int64_t fails_at = std::numeric_limits<int64_t>::max();

 private:
  const MadeBatches& made_;
  const std::vector<int64_t> own_;
  size_t next_ = 0;
};

/// How a run is computed.
struct Computed {
  int64_t replicas = 1;
  int64_t accumulation = 1;
  int ranks = 1;
  int64_t batches = 48;
  std::vector<int64_t> empty = {};  ///< batches that lost all of their images
  bool auto_micro_batch = false;
  bool overlap = true;
  int tight_rank = -1;                                     ///< whose memory runs out in pass tight_pass
  int64_t tight_pass = -1;                                 ///< from 0
  int64_t fails_at = std::numeric_limits<int64_t>::max();  ///< the batch that cannot be read
  config::OptimizerKind opt = config::OptimizerKind::sgd;

  EpochPlan plan() const { return {batches * kImagesPerBatch, kImagesPerBatch, batches, accumulation, replicas}; }
};

/// A network and its optimizer, always with the same weights at first.
inline Learner made_learner(std::shared_ptr<Watched> watched = std::make_shared<Watched>(),
                            config::OptimizerKind opt = config::OptimizerKind::sgd) {
  torch::manual_seed(1);
  Learner learner;
  learner.model = std::make_shared<TwoLayers>(watched);
  std::vector<optim::NamedParameter> parameters;
  for (const auto& item : learner.model->named_parameters()) parameters.push_back({item.key(), item.value()});
  config::ResolvedOptimOptions options;
  options.opt = opt;
  learner.optimizer = std::make_unique<optim::Optimizer>(parameters, options);
  learner.scaler = std::make_unique<optim::GradScaler>(optim::GradScalerSettings{}, torch::kCPU);
  return learner;
}

/// The result of one rank.
struct End {
  at::Tensor state;  ///< all weights and buffers behind one another, as doubles
  SumValues sums;
  int64_t images = 0;  ///< images of the last update
  int64_t micro_batches = 1;
};

inline at::Tensor state_of(const Learner& learner) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : learner.model->parameters())
    parts.push_back(tensor.detach().flatten().to(at::kDouble));
  for (const at::Tensor& tensor : learner.model->buffers()) parts.push_back(tensor.flatten().to(at::kDouble));
  return at::cat(parts);
}

inline End train(const Computed& setup, Group& group, Learner& learner) {
  at::set_num_threads(1);  // as a run with several replicas has it
  const MadeBatches made(setup.batches, setup.empty);
  const EpochPlan plan = setup.plan();
  ShardedFeed feed(made, own_batches(plan, share_of(group)));
  feed.fails_at = setup.fails_at;
  TaskSpec spec;
  spec.num_classes = kClasses;
  const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
  UpdaterSettings settings;
  settings.step.clip_grad = 1;
  settings.seed = 3;
  settings.mix.mixup_alpha = 0.4;
  settings.auto_micro_batch = setup.auto_micro_batch;
  settings.overlap = setup.overlap;
  Updater updater(settings, *task, learner, /*timer=*/nullptr, group);
  learner.model->train();
  End end;
  for (int64_t number = 0; number < plan.updates(); ++number) {
    end.images = updater.update(feed, plan.window(/*epoch=*/0, number), /*learning_rate=*/0.1);
  }
  end.state = state_of(learner);
  end.sums = updater.sums().read();
  end.micro_batches = updater.micro_batches();
  return end;
}

/// By rank; rethrows what the first of them threw, or gives all of that to `thrown`.
inline std::vector<End> trained(const Computed& setup, std::vector<std::exception_ptr>* thrown = nullptr) {
  std::vector<Learner> learners;
  for (int rank = 0; rank < setup.ranks; ++rank) {
    const auto watched = std::make_shared<Watched>();
    if (rank == setup.tight_rank) watched->tight_pass = setup.tight_pass;
    learners.push_back(made_learner(watched, setup.opt));
  }
  std::vector<End> ends(static_cast<size_t>(setup.ranks));
  if (setup.ranks == 1) {
    ends[0] = train(setup, alone(), learners[0]);
    return ends;
  }
  const auto all = run_ranks(setup.ranks, [&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    ends[rank] = train(setup, group, learners[rank]);
  });
  for (const std::exception_ptr& one : all) {
    if (one && !thrown) std::rethrow_exception(one);
  }
  if (thrown) *thrown = all;
  return ends;
}

inline void expect_same(const End& one, const End& other, const std::string& what) {
  EXPECT_TRUE(at::equal(one.state, other.state)) << what;
  EXPECT_EQ(one.sums.loss_sum, other.sums.loss_sum) << what;
  EXPECT_EQ(one.sums.score_sum, other.sums.score_sum) << what;
  EXPECT_EQ(one.sums.images, other.sums.images) << what;
  EXPECT_EQ(one.images, other.images) << what;
}

}  // namespace stoker::engine
