// SPDX-License-Identifier: Apache-2.0
// Digests of updates: when there are any, and that they are of what is computed.
#include <gtest/gtest.h>

#include <map>

#include "loop/tiny_run.h"

namespace stoker::engine {
namespace {

using namespace tiny_run;

std::map<int64_t, DigestEvent> by_update(const std::vector<DigestEvent>& events) {
  std::map<int64_t, DigestEvent> map;
  for (const DigestEvent& event : events) map[event.updates] = event;
  return map;
}

TEST_F(TrainerTest, TheFirstAndEachNthUpdateHasDigests) {
  TinyOptions options;  // 13 updates per epoch
  options.digest_every = 5;
  options.limits.epochs = 1;
  TinyRun run(folder_ / "a", options);
  run.go();
  std::vector<int64_t> updates;
  for (const DigestEvent& event : run.recorder_.digests) updates.push_back(event.updates);
  EXPECT_EQ(updates, (std::vector<int64_t>{1, 5, 10}));
  options.digest_every = 0;
  TinyRun without(folder_ / "b", options);
  without.go();
  EXPECT_TRUE(without.recorder_.digests.empty());
}

TEST_F(TrainerTest, AResumedRunHasTheDigestsOfOneThatWasNotStopped) {
  TinyOptions options;
  options.digest_every = 1;
  options.accumulation = 3;  // 5 updates per epoch
  options.mix.mixup_alpha = 0.4;
  TinyRun whole(folder_ / "whole", options);
  whole.go();
  const auto wanted = by_update(whole.recorder_.digests);
  ASSERT_EQ(wanted.size(), 15u);
  {
    TinyRun first(folder_ / "stopped", options);
    first.recorder_.stop_after_update = 7;
    first.go();
  }
  core::request_stop(0);
  TinyRun second(folder_ / "stopped", options);
  second.go();
  const auto found = by_update(second.recorder_.digests);
  ASSERT_EQ(found.size(), 8u);
  for (const auto& [update, event] : found) {
    EXPECT_EQ(event.weights, wanted.at(update).weights) << update;
    EXPECT_EQ(event.images, wanted.at(update).images) << update;
    EXPECT_EQ(event.epoch, wanted.at(update).epoch);
  }
  EXPECT_NE(wanted.at(1).images, wanted.at(6).images) << "another epoch has another order";
  EXPECT_NE(wanted.at(1).weights, wanted.at(2).weights);
}

TEST_F(TrainerTest, TheDigestOfImagesIsOfWhatTheNetworkGot) {
  TinyOptions plain, mixed;
  plain.digest_every = mixed.digest_every = 1;
  plain.limits.epochs = mixed.limits.epochs = 1;
  mixed.mix.mixup_alpha = 0.4;
  TinyRun a(folder_ / "a", plain), b(folder_ / "b", mixed);
  a.go();
  b.go();
  EXPECT_NE(a.recorder_.digests[0].images, b.recorder_.digests[0].images);
}

}  // namespace
}  // namespace stoker::engine
