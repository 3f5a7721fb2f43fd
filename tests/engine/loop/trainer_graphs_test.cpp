// SPDX-License-Identifier: Apache-2.0
// Whole runs whose updates are replayed from a record: the bits of computed ones, also behind a stop, and the record of
// every update's images and weights that a run writes.
#include <gtest/gtest.h>

#include "loop/tiny_run.h"
#include "step/recorded_operations.h"

namespace stoker::engine {
namespace {

using namespace tiny_run;

TinyOptions graph_options() {
  TinyOptions options;  // 13 batches per epoch, the last one short
  options.accumulation = 2;
  options.has_batch_norm = true;
  options.digest_every = 3;
  options.mix.mixup_alpha = 0.4;
  return options;
}

TEST_F(TrainerTest, ReplayedUpdatesAndResumesHaveTheBitsOfComputedOnes) {
  const TinyOptions computed_options = graph_options();
  TinyRun computed(folder_ / "computed", computed_options);
  computed.go();

  fixtures::OperationRecorder recorder;
  TinyOptions options = computed_options;
  options.graphs = &recorder;
  TinyRun whole(folder_ / "whole", options);
  whole.go();
  EXPECT_EQ(recorder.records, 1);
  EXPECT_GT(recorder.replays, 10);
  EXPECT_TRUE(torch::equal(whole.weight(), computed.weight()));
  ASSERT_EQ(whole.recorder_.digests.size(), computed.recorder_.digests.size());
  for (size_t i = 0; i < whole.recorder_.digests.size(); ++i) {
    EXPECT_EQ(whole.recorder_.digests[i].weights, computed.recorder_.digests[i].weights);
    EXPECT_EQ(whole.recorder_.digests[i].images, computed.recorder_.digests[i].images);
  }

  for (const int64_t update : {2, 6, 7, 11}) {
    const std::string folder = folder_ / ("stop-" + std::to_string(update));
    {
      TinyRun first(folder, options);
      first.recorder_.stop_after_update = update;
      EXPECT_EQ(first.go().updates, update);
    }
    core::request_stop(0);
    TinyRun second(folder, options);
    second.go();
    EXPECT_TRUE(torch::equal(second.weight(), computed.weight())) << "stopped after update " << update;
  }
}

TEST_F(TrainerTest, ABatchThatLostAnImageIsComputedInARunThatReplays) {
  TinyOptions options;
  options.one_is_bad = true;
  TinyRun computed(folder_ / "computed", options);
  computed.go();
  fixtures::OperationRecorder recorder;
  options.graphs = &recorder;
  TinyRun replayed(folder_ / "replayed", options);
  replayed.go();
  EXPECT_GT(recorder.replays, 20);
  EXPECT_TRUE(torch::equal(replayed.weight(), computed.weight()));
  EXPECT_EQ(replayed.trained_on(), computed.trained_on());
  EXPECT_EQ(replayed.trained_on(), 3 * 102) << "without the bad one";
}

}  // namespace
}  // namespace stoker::engine
