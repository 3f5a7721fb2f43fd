// SPDX-License-Identifier: Apache-2.0
// Two ranks, on threads, train one network by real updates: each sees half of the batches.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "engine/step/updater.h"
#include "tests/engine/group/thread_group.h"

namespace stoker::engine {
namespace {

constexpr int64_t kClasses = 4, kImagesPerBatch = 6, kUpdates = 12;

class TwoLayers : public model::ImageModel {
 public:
  TwoLayers() {
    hidden_ = register_module("hidden", torch::nn::Linear(16, 8));
    fc_ = register_module("fc", torch::nn::Linear(8, kClasses));
  }
  torch::Tensor forward(torch::Tensor images) override { return fc_(at::relu(hidden_(images.flatten(1)))); }
  std::string head_prefix() const override { return "fc."; }

 private:
  torch::nn::Linear hidden_{nullptr}, fc_{nullptr};
};

/// The batches of all updates, in order; those at `empty` lost all of their images.
struct MadeBatches {
  explicit MadeBatches(int64_t count, std::vector<int64_t> empty = {}) {
    const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(7);
    for (int64_t i = 0; i < count; ++i) {
      const bool is_empty = std::find(empty.begin(), empty.end(), i) != empty.end();
      data::Batch batch;
      batch.images = at::randn({is_empty ? 0 : kImagesPerBatch, 1, 4, 4}, random, at::kFloat);
      batch.labels = at::arange(batch.images.size(0), at::kLong).add(i).remainder(kClasses);
      batch.planned_images = kImagesPerBatch;
      batches.push_back(batch);
    }
  }
  std::vector<data::Batch> batches;
};

/// Every `step`-th of them from `first` on.
class DealtFeed : public BatchFeed {
 public:
  DealtFeed(const MadeBatches& made, int64_t first, int64_t step) : made_(made), next_(first), step_(step) {}
  data::Batch next(bool) override {
    if (next_ >= fails_at) throw core::Error(core::ErrorKind::data, "image 7 is torn in two");
    const data::Batch& batch = made_.batches.at(static_cast<size_t>(next_));
    next_ += step_;
    return batch;
  }
  void go_back_to(const UpdateWindow&) override { FAIL() << "memory did not run out"; }

  int64_t fails_at = std::numeric_limits<int64_t>::max();

 private:
  const MadeBatches& made_;
  int64_t next_;
  const int64_t step_;
};

/// A network and its optimizer, always with the same weights at first.
Learner made_learner() {
  torch::manual_seed(1);
  Learner learner;
  learner.model = std::make_shared<TwoLayers>();
  std::vector<optim::NamedParameter> parameters;
  for (const auto& item : learner.model->named_parameters()) parameters.push_back({item.key(), item.value()});
  config::ResolvedOptimOptions options;
  learner.optimizer = std::make_unique<optim::Optimizer>(parameters, options);
  learner.scaler = std::make_unique<optim::GradScaler>(optim::GradScalerSettings{}, torch::kCPU);
  return learner;
}

/// Does kUpdates updates of `batches_per_update` batches over all ranks, and returns the images of the last one.
int64_t train(Learner& learner, BatchFeed& feed, int64_t batches_per_update, Group* group) {
  TaskSpec spec;
  spec.num_classes = kClasses;
  const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
  UpdaterSettings settings;
  settings.step.clip_grad = 1;
  Updater updater(settings, *task, learner, /*timer=*/nullptr, group);
  learner.model->train();
  int64_t images = 0;
  for (int64_t number = 0; number < kUpdates; ++number) {
    UpdateWindow window;
    window.number = number;
    window.batch_size = kImagesPerBatch;
    window.batch_count = batches_per_update / (group ? group->size() : 1);
    window.planned_images = batches_per_update * kImagesPerBatch;
    images = updater.update(feed, window, /*learning_rate=*/0.1);
  }
  return images;
}

/// All weights behind one another.
at::Tensor weights(const Learner& learner) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& parameter : learner.model->parameters()) parts.push_back(parameter.detach().flatten());
  return at::cat(parts);
}

at::Tensor trained_alone(const MadeBatches& made, int64_t batches_per_update) {
  Learner learner = made_learner();
  DealtFeed feed(made, 0, 1);
  train(learner, feed, batches_per_update, nullptr);
  return weights(learner);
}

/// By rank.
std::vector<at::Tensor> trained_by_ranks(const MadeBatches& made, int64_t batches_per_update, int ranks) {
  std::vector<Learner> learners;
  for (int rank = 0; rank < ranks; ++rank) learners.push_back(made_learner());
  std::vector<at::Tensor> ends(static_cast<size_t>(ranks));
  const auto thrown = run_ranks(ranks, [&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    DealtFeed feed(made, group.rank(), group.size());
    train(learners[rank], feed, batches_per_update, &group);
    ends[rank] = weights(learners[rank]);
  });
  for (const std::exception_ptr& one : thrown) {
    if (one) std::rethrow_exception(one);
  }
  return ends;
}

TEST(RanksTest, TwoRanksWithABatchEachHaveTheBitsOfOneWithBoth) {
  const MadeBatches made(2 * kUpdates);
  const std::vector<at::Tensor> ranks = trained_by_ranks(made, 2, 2);
  EXPECT_TRUE(at::equal(ranks[0], ranks[1]));
  EXPECT_TRUE(at::equal(ranks[0], trained_alone(made, 2))) << "a + b, in both";
  EXPECT_FALSE(at::equal(ranks[0], weights(made_learner()))) << "they have learned";
}

TEST(RanksTest, WithMoreBatchesOnlyTheOrderOfTheSumDiffers) {
  const MadeBatches made(4 * kUpdates);
  const at::Tensor alone = trained_alone(made, 4);
  for (const int count : {2, 4}) {
    const std::vector<at::Tensor> ranks = trained_by_ranks(made, 4, count);
    for (const at::Tensor& one : ranks) EXPECT_TRUE(at::equal(one, ranks[0])) << count << " ranks";
    EXPECT_TRUE(at::allclose(ranks[0], alone, 1e-4, 1e-6)) << count << " ranks";
  }
}

TEST(RanksTest, ARankWithoutImagesTakesPartAndTheMeanIsOverTheOthers) {
  const MadeBatches made(2 * kUpdates, /*empty=*/{1, 4, 5});  // of the first update one rank's, of the third both
  const std::vector<at::Tensor> ranks = trained_by_ranks(made, 2, 2);
  EXPECT_TRUE(at::equal(ranks[0], ranks[1]));
  EXPECT_TRUE(at::equal(ranks[0], trained_alone(made, 2)));
}

TEST(RanksTest, UpdatesReturnTheImagesOfAllRanks) {
  const MadeBatches made(2 * kUpdates, /*empty=*/{2 * kUpdates - 1});
  std::vector<Learner> learners;
  for (int rank = 0; rank < 2; ++rank) learners.push_back(made_learner());
  run_ranks(2, [&](Group& group) {
    DealtFeed feed(made, group.rank(), 2);
    EXPECT_EQ(train(learners[static_cast<size_t>(group.rank())], feed, 2, &group), kImagesPerBatch);
  });
}

TEST(RanksTest, AnErrorOnOneRankEndsTheOtherWithItsMessage) {
  const MadeBatches made(2 * kUpdates);
  std::vector<Learner> learners;
  for (int rank = 0; rank < 2; ++rank) learners.push_back(made_learner());
  const auto thrown = run_ranks(2, [&](Group& group) {
    DealtFeed feed(made, group.rank(), 2);
    if (group.rank() == 1) feed.fails_at = 9;
    train(learners[static_cast<size_t>(group.rank())], feed, 2, &group);
  });
  ASSERT_TRUE(thrown[0] && thrown[1]);
  try {
    std::rethrow_exception(thrown[0]);
  } catch (const core::Error& error) {
    EXPECT_STREQ(error.what(), "rank 1 failed: image 7 is torn in two");
    EXPECT_EQ(core::exit_code(error.kind()), 76);
  }
}

}  // namespace
}  // namespace stoker::engine
