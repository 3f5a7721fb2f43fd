// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/compute_probe.h"

#include <gtest/gtest.h>

namespace stoker::engine {
namespace {

/// Work that takes a second for each of the first two times, which load libraries, and a millisecond after that.
class SlowToBegin {
 public:
  double rate(const CallRateSettings& settings) {
    return call_rate([this] { seconds_ += calls_++ < 2 ? 1 : 1e-3; }, [] {}, settings, [this] { return seconds_; });
  }
  int calls() const { return calls_; }

 private:
  double seconds_ = 100;
  int calls_ = 0;
};

TEST(CallRateTest, AGpuThatIsSlowToBeginIsMeasuredOnceItHasBegun) {
  SlowToBegin work;
  EXPECT_NEAR(work.rate(call_rate_on_gpu(/*seconds=*/0.3)), 1000, 1);
  EXPECT_GE(work.calls(), 2 + 300);
}

TEST(CallRateTest, OnAGpuAtLeastTenCallsAreCounted) {
  SlowToBegin work;
  EXPECT_NEAR(work.rate(call_rate_on_gpu(/*seconds=*/1e-4)), 1000, 1);
  EXPECT_EQ(work.calls(), 2 + 10);
}

TEST(CallRateTest, ACpuWhoseFirstCallTakesAllTheTimeIsMeasuredByIt) {
  SlowToBegin work;
  EXPECT_NEAR(work.rate(call_rate_on_cpu(/*seconds=*/0.3)), 1, 1e-6);
  EXPECT_EQ(work.calls(), 1);
}

}  // namespace
}  // namespace stoker::engine
