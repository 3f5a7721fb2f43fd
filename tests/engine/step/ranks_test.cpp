// SPDX-License-Identifier: Apache-2.0
// Replicas of one network train by real updates, computed by one rank or dealt to several, which are threads here.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <set>

#include "core/error.h"
#include "engine/step/updater.h"
#include "tests/engine/group/thread_group.h"

namespace stoker::engine {
namespace {

constexpr int64_t kClasses = 4, kImagesPerBatch = 6;

/// With batch norm: what one replica sees, another must not. Notes one random number of each pass.
class TwoLayers : public model::ImageModel {
 public:
  TwoLayers() {
    hidden_ = register_module("hidden", torch::nn::Linear(16, 8));
    norm_ = register_module("norm", torch::nn::BatchNorm1d(8));
    fc_ = register_module("fc", torch::nn::Linear(8, kClasses));
  }
  torch::Tensor forward(torch::Tensor images) override {
    if (++passes_ == tight_pass) throw std::bad_alloc();
    if (notes_numbers) drawn.push_back(at::rand({1}).item<float>());
    return fc_(at::relu(norm_(hidden_(images.flatten(1)))));
  }
  std::string head_prefix() const override { return "fc."; }

  int64_t tight_pass = -1;  ///< in which memory runs out
  bool notes_numbers = false;
  std::vector<float> drawn;  ///< in the order of passes

 private:
  torch::nn::Linear hidden_{nullptr}, fc_{nullptr};
  torch::nn::BatchNorm1d norm_{nullptr};
  int64_t passes_ = 0;
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
class DealtFeed : public BatchFeed {
 public:
  DealtFeed(const MadeBatches& made, std::vector<int64_t> own) : made_(made), own_(std::move(own)) {}
  data::Batch next(bool) override {
    if (own_.at(next_) == fails_at) throw core::Error(core::ErrorKind::data, "image 7 is torn in two");
    return made_.batches.at(static_cast<size_t>(own_[next_++]));
  }
  void go_back_to(const UpdateWindow& window) override {
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
  int tight_rank = -1;  ///< whose memory runs out in pass tight_pass
  int64_t tight_pass = -1;
  int64_t fails_at = std::numeric_limits<int64_t>::max();  ///< the batch that cannot be read

  EpochPlan plan() const { return {batches * kImagesPerBatch, kImagesPerBatch, batches, accumulation, replicas}; }
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

/// What one rank ended with.
struct End {
  at::Tensor state;  ///< all weights and buffers behind one another, as doubles
  SumValues sums;
  int64_t images = 0;  ///< of the last update
  int64_t pieces = 1;
};

at::Tensor state_of(const Learner& learner) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& tensor : learner.model->parameters())
    parts.push_back(tensor.detach().flatten().to(at::kDouble));
  for (const at::Tensor& tensor : learner.model->buffers()) parts.push_back(tensor.flatten().to(at::kDouble));
  return at::cat(parts);
}

End train(const Computed& setup, Group* group, Learner& learner) {
  const MadeBatches made(setup.batches, setup.empty);
  const RankShare share = group ? RankShare{group->rank(), group->size()} : RankShare{};
  const EpochPlan plan = setup.plan();
  DealtFeed feed(made, own_batches(plan, share));
  feed.fails_at = setup.fails_at;
  if (share.rank == setup.tight_rank) dynamic_cast<TwoLayers&>(*learner.model).tight_pass = setup.tight_pass;
  TaskSpec spec;
  spec.num_classes = kClasses;
  const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
  UpdaterSettings settings;
  settings.step.clip_grad = 1;
  settings.seed = 3;
  settings.mix.mixup_alpha = 0.4;
  settings.auto_micro_batch = setup.auto_micro_batch;
  Updater updater(settings, *task, learner, /*timer=*/nullptr, group);
  learner.model->train();
  End end;
  for (int64_t number = 0; number < plan.updates(); ++number) {
    end.images = updater.update(feed, plan.window(/*epoch=*/0, number), /*learning_rate=*/0.1);
  }
  end.state = state_of(learner);
  end.sums = updater.sums().read();
  end.pieces = updater.pieces();
  return end;
}

/// By rank; rethrows what the first of them threw, or gives all of that to `thrown`.
std::vector<End> trained(const Computed& setup, std::vector<std::exception_ptr>* thrown = nullptr) {
  std::vector<Learner> learners;
  for (int rank = 0; rank < setup.ranks; ++rank) learners.push_back(made_learner());
  std::vector<End> ends(static_cast<size_t>(setup.ranks));
  if (setup.ranks == 1) {
    ends[0] = train(setup, nullptr, learners[0]);
    return ends;
  }
  const auto all = run_ranks(setup.ranks, [&](Group& group) {
    const auto rank = static_cast<size_t>(group.rank());
    ends[rank] = train(setup, &group, learners[rank]);
  });
  for (const std::exception_ptr& one : all) {
    if (one && !thrown) std::rethrow_exception(one);
  }
  if (thrown) *thrown = all;
  return ends;
}

void expect_same(const End& one, const End& other, const std::string& what) {
  EXPECT_TRUE(at::equal(one.state, other.state)) << what;
  EXPECT_EQ(one.sums.loss_sum, other.sums.loss_sum) << what;
  EXPECT_EQ(one.sums.score_sum, other.sums.score_sum) << what;
  EXPECT_EQ(one.sums.images, other.sums.images) << what;
  EXPECT_EQ(one.images, other.images) << what;
}

void expect_same_for_all_ranks(Computed setup) {
  setup.ranks = 1;
  const End alone = trained(setup)[0];
  EXPECT_FALSE(at::equal(alone.state, state_of(made_learner()))) << "it has learned";
  for (const int ranks : {2, 4}) {
    if (setup.replicas % ranks != 0) continue;
    setup.ranks = ranks;
    for (const End& end : trained(setup)) expect_same(end, alone, std::to_string(ranks) + " ranks");
  }
}

TEST(ReplicasTest, AnyNumberOfRanksEndsWithTheSameBits) {
  expect_same_for_all_ranks({/*replicas=*/2});
  expect_same_for_all_ranks({/*replicas=*/4});
  expect_same_for_all_ranks({/*replicas=*/4, /*accumulation=*/3});
  expect_same_for_all_ranks({/*replicas=*/8});
}

TEST(ReplicasTest, AShortLastUpdateThatDividesNowhereToo) {
  for (const int64_t batches : {45, 46, 47}) {
    Computed setup{/*replicas=*/4, /*accumulation=*/2};
    setup.batches = batches;
    expect_same_for_all_ranks(setup);
  }
}

TEST(ReplicasTest, AReplicaWithoutImagesTakesPartAndTheMeanIsOverTheOthers) {
  Computed setup{/*replicas=*/4};
  setup.empty = {1, 4, 5, 6, 7, 8, 10};  // of the first update one, of the second all, of the third two
  expect_same_for_all_ranks(setup);
}

TEST(ReplicasTest, OneReplicaIsWhatItWasWithoutThem) {
  // The gradient of two micro-batches of one replica is added in order, and batch norm sees one after the other.
  Computed one{/*replicas=*/1, /*accumulation=*/2}, two{/*replicas=*/2, /*accumulation=*/1};
  const End first = trained(one)[0], second = trained(two)[0];
  EXPECT_EQ(first.sums.images, second.sums.images);
  EXPECT_FALSE(at::equal(first.state, second.state)) << "running statistics of two replicas are averaged";
}

TEST(ReplicasTest, RunningStatisticsAreTheMeanOverReplicas) {
  Computed setup{/*replicas=*/2};
  setup.batches = 2;
  Learner learner = made_learner();
  train(setup, nullptr, learner);
  at::Tensor mean = at::zeros({8});
  for (const int64_t kept : {0, 1}) {
    Computed alone{/*replicas=*/2};
    alone.batches = 2;
    alone.empty = {1 - kept};
    Learner other = made_learner();
    train(alone, nullptr, other);  // of the empty one the statistics stay 0
    mean += other.model->named_buffers()["norm.running_mean"];
  }
  EXPECT_TRUE(at::allclose(learner.model->named_buffers()["norm.running_mean"], mean, 1e-5, 1e-7));
  EXPECT_EQ(learner.model->named_buffers()["norm.num_batches_tracked"].item<int64_t>(), 1) << "of replica 0";
}

/// A group that is not there: what a rank computes before it exchanges anything.
class DeafGroup : public Group {
 public:
  DeafGroup(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void sum(const std::vector<at::Tensor>&) override {}
  std::string from_root(const std::string& bytes) override { return bytes; }
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
  bool abort(const std::string&) noexcept override { return true; }

 private:
  const int rank_, size_;
};

TEST(ReplicasTest, WhatTheNetworkDrawsIsAFunctionOfUpdateMicroBatchAndReplica) {
  const Computed setup{/*replicas=*/4, /*accumulation=*/2};
  const auto drawn_by = [&](Group* group, const RankShare& share) {
    Learner learner = made_learner();
    auto& model = dynamic_cast<TwoLayers&>(*learner.model);
    model.notes_numbers = true;
    torch::manual_seed(static_cast<uint64_t>(100 + share.rank));  // of no consequence
    train(setup, group, learner);
    std::map<int64_t, float> by_batch;
    const std::vector<int64_t> own = own_batches(setup.plan(), share);
    EXPECT_EQ(own.size(), model.drawn.size());
    for (size_t i = 0; i < own.size(); ++i) by_batch[own[i]] = model.drawn[i];
    return by_batch;
  };
  const std::map<int64_t, float> alone = drawn_by(nullptr, {});
  std::map<int64_t, float> together;
  for (int rank = 0; rank < 2; ++rank) {
    DeafGroup group(rank, 2);
    together.merge(drawn_by(&group, {rank, 2}));
  }
  EXPECT_EQ(alone, together);
  std::set<float> different;
  for (const auto& [batch, number] : alone) different.insert(number);
  EXPECT_EQ(different.size(), alone.size());
}

TEST(ReplicasTest, MemoryThatRunsOutOnOneRankSplitsTheBatchesOfAll) {
  Computed setup{/*replicas=*/2, /*accumulation=*/2};
  setup.auto_micro_batch = true;
  setup.tight_pass = 10;  // of the rank: in its third update
  setup.tight_rank = 1;
  setup.ranks = 2;
  const std::vector<End> ends = trained(setup);
  EXPECT_EQ(ends[0].pieces, 2);
  EXPECT_EQ(ends[1].pieces, 2);
  expect_same(ends[0], ends[1], "both ranks");
}

TEST(ReplicasTest, AnErrorOnOneRankEndsTheOtherWithItsMessage) {
  Computed setup{/*replicas=*/2};
  setup.ranks = 2;
  setup.fails_at = 19;
  std::vector<std::exception_ptr> thrown;
  trained(setup, &thrown);
  ASSERT_EQ(thrown.size(), 2u);
  int peers = 0;
  for (const std::exception_ptr& one : thrown) {
    try {
      ASSERT_TRUE(one);
      std::rethrow_exception(one);
    } catch (const core::Error& error) {
      if (core::exit_code(error.kind()) != 76) continue;
      ++peers;
      EXPECT_STREQ(error.what(), "rank 1 failed: image 7 is torn in two");
    }
  }
  EXPECT_EQ(peers, 1);
}

}  // namespace
}  // namespace stoker::engine
