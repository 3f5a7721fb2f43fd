// SPDX-License-Identifier: Apache-2.0
// Replicas that are computed by one rank or dealt to several.
#include <set>

#include "core/system/stop_signal.h"
#include "tests/engine/step/replica_run.h"

namespace stoker::engine {
namespace {

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

TEST(ReplicasTest, EachOptimizerToo) {
  using Kind = config::OptimizerKind;
  for (const Kind kind : {Kind::rmsprop, Kind::nadam, Kind::lion, Kind::lamb, Kind::muon}) {
    Computed setup{/*replicas=*/2, /*accumulation=*/2};
    setup.batches = 12;
    setup.opt = kind;
    expect_same_for_all_ranks(setup);
  }
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
  train(setup, alone(), learner);
  at::Tensor mean = at::zeros({8});
  for (const int64_t kept : {0, 1}) {
    Computed one{/*replicas=*/2};
    one.batches = 2;
    one.empty = {1 - kept};
    Learner other = made_learner();
    train(one, alone(), other);  // of the empty one the statistics stay 0
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
  const auto drawn_by = [&](Group& group, uint64_t seed) {
    const auto watched = std::make_shared<Watched>();
    Learner learner = made_learner(watched);
    torch::manual_seed(seed);  // of no consequence
    train(setup, group, learner);
    return watched->drawn;
  };
  const std::map<float, float> drawn_alone = drawn_by(alone(), 1);
  EXPECT_EQ(drawn_alone.size(), 48u);
  EXPECT_EQ(drawn_alone, drawn_by(alone(), 2));
  std::map<float, float> together;
  for (int rank = 0; rank < 2; ++rank) {
    DeafGroup group(rank, 2);
    together.merge(drawn_by(group, 1));
  }
  EXPECT_EQ(together.size(), drawn_alone.size());
  std::set<float> different;
  for (const auto& [batch, number] : drawn_alone) {
    different.insert(number);
    EXPECT_EQ(together[batch], number);
  }
  EXPECT_EQ(different.size(), drawn_alone.size());
}

/// Stops whenever it may.
class StoppedFeed : public BatchFeed {
 public:
  data::Batch next(bool may_stop) override {
    if (may_stop) throw core::StopRequested();
    ADD_FAILURE() << "an update has begun";
    return {};
  }
  void rewind_to(const UpdateWindow&) override {}
};

TEST(ReplicasTest, AStopComesBeforeTheFirstBatch) {
  Learner learner = made_learner();
  TaskSpec spec;
  spec.num_classes = kClasses;
  const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
  Updater updater(UpdaterSettings{}, *task, learner);
  StoppedFeed feed;
  const at::Tensor before = state_of(learner);
  EXPECT_THROW(updater.update(feed, Computed{/*replicas=*/2}.plan().window(0, 0), 0.1), core::StopRequested);
  EXPECT_TRUE(at::equal(state_of(learner), before));
}

TEST(ReplicasTest, MemoryThatRunsOutInOneReplicaSplitsTheBatchesOfAll) {
  Computed setup{/*replicas=*/4, /*accumulation=*/2};
  setup.auto_micro_batch = true;
  setup.tight_rank = 0;
  setup.tight_pass = 19;  // in the third update
  EXPECT_EQ(trained(setup)[0].micro_batches, 2);
}

TEST(ReplicasTest, MemoryThatRunsOutOnOneRankSplitsTheBatchesOfAll) {
  Computed setup{/*replicas=*/2, /*accumulation=*/2};
  setup.auto_micro_batch = true;
  setup.tight_pass = 9;  // of the rank: in its third update
  setup.tight_rank = 1;
  setup.ranks = 2;
  const std::vector<End> ends = trained(setup);
  EXPECT_EQ(ends[0].micro_batches, 2);
  EXPECT_EQ(ends[1].micro_batches, 2);
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
