// SPDX-License-Identifier: Apache-2.0
// Replicas that threads of one process compute at the same time.
#include "engine/step/lanes.h"

#include <condition_variable>

#include "core/system/stop_signal.h"
#include "tests/engine/step/replica_run.h"

namespace stoker::engine {
namespace {

void expect_same_for_all_lanes(Computed setup) {
  setup.lanes = 1;
  const End alone = trained(setup)[0];
  EXPECT_FALSE(at::equal(alone.state, state_of(made_learner()))) << "it has learned";
  for (const int64_t lanes : {2, 3, 4, 6}) {
    setup.lanes = lanes;
    for (const int ranks : {1, 2}) {
      setup.ranks = ranks;
      for (const End& end : trained(setup)) {
        expect_same(end, alone, std::to_string(ranks) + " ranks of " + std::to_string(lanes) + " lanes");
      }
    }
  }
}

TEST(LanesTest, AnyNumberOfLanesEndsWithTheSameBits) {
  expect_same_for_all_lanes({/*replicas=*/2});
  expect_same_for_all_lanes({/*replicas=*/4, /*accumulation=*/3});
  expect_same_for_all_lanes({/*replicas=*/8});
}

TEST(LanesTest, AShortLastUpdateAndBatchesThatLostTheirImagesToo) {
  Computed setup{/*replicas=*/4, /*accumulation=*/2};
  setup.batches = 45;
  setup.empty = {1, 4, 5, 6, 7, 8, 10, 16, 17, 18, 19, 20, 21, 22, 23};
  expect_same_for_all_lanes(setup);
}

TEST(LanesTest, TheyComputeAtTheSameTime) {
  const auto watched = std::make_shared<Watched>();
  std::condition_variable changed;
  std::mutex mutex;
  int64_t begun = 0;
  watched->on_pass = [&](int64_t) {
    std::unique_lock<std::mutex> lock(mutex);
    ++begun;
    changed.notify_all();
    // Each waits for the other.
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return begun >= 2; }));
  };
  Learner learner = made_learner(watched);
  Computed setup{/*replicas=*/2};
  setup.lanes = 2;
  setup.batches = 2;
  train(setup, nullptr, learner);
}

TEST(LanesTest, MemoryThatRunsOutOnOneLaneSplitsTheBatchesOfAll) {
  Computed setup{/*replicas=*/4, /*accumulation=*/2};
  setup.auto_micro_batch = true;
  setup.tight_rank = 0;
  setup.tight_pass = 19;  // in the third update
  const End alone = trained(setup)[0];
  EXPECT_EQ(alone.micro_batches, 2);
  setup.lanes = 2;
  const End on_lanes = trained(setup)[0];
  EXPECT_EQ(on_lanes.micro_batches, 2);
  expect_same(on_lanes, alone, "two lanes");
}

TEST(LanesTest, TheErrorOfALaneReachesTheCaller) {
  for (const int64_t batch : {16, 17, 18, 19}) {
    Computed setup{/*replicas=*/4};
    setup.lanes = 2;
    setup.fails_at = batch;
    try {
      trained(setup);
      ADD_FAILURE() << "batch " << batch;
    } catch (const core::Error& error) {
      EXPECT_STREQ(error.what(), "image 7 is torn in two");
    }
  }
}

/// Stops whenever it may.
class StoppedFeed : public BatchFeed {
 public:
  data::Batch next(bool may_stop) override {
    if (may_stop) throw core::StopRequested();
    ADD_FAILURE() << "an update has begun";
    return {};
  }
  void go_back_to(const UpdateWindow&) override {}
};

TEST(LanesTest, AStopComesBeforeTheFirstBatch) {
  Learner learner = made_learner();
  TaskSpec spec;
  spec.num_classes = kClasses;
  const std::unique_ptr<Task> task = make_task(spec, torch::kCPU);
  UpdaterSettings settings;
  settings.lanes = 2;
  Updater updater(settings, *task, learner);
  StoppedFeed feed;
  Computed setup{/*replicas=*/2};
  setup.lanes = 2;
  const at::Tensor before = state_of(learner);
  EXPECT_THROW(updater.update(feed, setup.plan().window(0, 0), 0.1), core::StopRequested);
  EXPECT_TRUE(at::equal(state_of(learner), before));
}

TEST(LanesTest, TheirNetworksFollowWeightsThatMoveToOtherMemory) {
  Learner learner = made_learner();
  Lanes lanes(learner, 2);
  const auto is_shared = [&] {
    bool all = true;
    lanes.run([](int64_t) {});
    const std::vector<torch::Tensor> own = lanes.lane(1).network->parameters(), weights = learner.model->parameters();
    for (size_t i = 0; i < own.size(); ++i) all &= own[i].data_ptr() == weights[i].data_ptr();
    return all;
  };
  EXPECT_TRUE(is_shared());
  for (torch::Tensor& weight : learner.model->parameters()) weight.set_data(weight.detach().clone());
  EXPECT_TRUE(is_shared());
  learner.model->eval();
  lanes.run([](int64_t) {});
  EXPECT_FALSE(lanes.lane(1).network->is_training());
  EXPECT_NE(lanes.lane(1).network->buffers()[0].data_ptr(), learner.model->buffers()[0].data_ptr());
}

}  // namespace
}  // namespace stoker::engine
