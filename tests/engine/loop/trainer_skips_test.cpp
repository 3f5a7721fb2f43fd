// SPDX-License-Identifier: Apache-2.0
// Runs whose float16 gradients overflow: a few of them, or all.
#include "loop/tiny_run.h"

namespace stoker::engine {
namespace {

using namespace tiny_run;

class SkippingRunTest : public TrainerTest {
 protected:
  SkippingRunTest() {
    options_.scaling.enabled = true;
    options_.scaling.growth_interval = 10;
    options_.skips = {/*min_scale=*/1e-4, /*max_skipped=*/8};
  }

  /// How a run ends whose first `updates` gradients overflow; "" when it does not fail.
  std::string failure_after(int64_t updates) {
    TinyRun run(folder_ / "run", options_);
    run.spoil_gradients(updates);
    try {
      run.go();
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::diverged);
      EXPECT_TRUE(run.checkpoints().files().list().empty());
      hint_ = error.hint();
      return error.what();
    }
    reports_ = run.recorder_.reports;
    return "";
  }

  TinyOptions options_;
  std::vector<ReportEvent> reports_;
  std::string hint_;  ///< hint of the error
};

TEST_F(SkippingRunTest, UpdatesThatAreSkippedForeverEndTheRun) {
  const std::string message = failure_after(1'000'000);
  EXPECT_NE(message.find("float16 gradients overflowed in 8 updates in a row, up to update 8 (loss scale 256); "
                         "--max-skipped is 8"),
            std::string::npos)
      << message;
  EXPECT_NE(hint_.find("lower --loss-scale, or raise --max-skipped"), std::string::npos) << hint_;
}

TEST_F(SkippingRunTest, WhereNoScaleHelpsTheHintIsAnotherPrecision) {
  options_.scaling.init_scale = 1;
  failure_after(1'000'000);
  EXPECT_NE(hint_.find("--amp bfloat16"), std::string::npos) << hint_;
}

TEST_F(SkippingRunTest, AScaleBelowItsLimitEndsTheRun) {
  options_.skips = {/*min_scale=*/1000, /*max_skipped=*/0};
  const std::string message = failure_after(1'000'000);
  EXPECT_NE(message.find("overflow at update 7 although the loss scale is 512; --min-scale is 1000"), std::string::npos)
      << message;
}

TEST_F(SkippingRunTest, WithoutReportsTheEndOfAnEpochTells) {
  options_.report_every = {};
  const std::string message = failure_after(1'000'000);
  EXPECT_NE(message.find("13 updates in a row, up to update 13"), std::string::npos) << message;
}

TEST_F(SkippingRunTest, AFewSkippedUpdatesDoNot) {
  EXPECT_EQ(failure_after(7), "");
  ASSERT_EQ(reports_.size(), 39U);
  EXPECT_EQ(reports_[6].loss_scale, 512) << "halved seven times";
  EXPECT_EQ(reports_[15].loss_scale, 512);
  EXPECT_EQ(reports_[16].loss_scale, 1024) << "ten good updates later";
  EXPECT_EQ(reports_.back().skipped_updates, 7);
}

TEST_F(SkippingRunTest, LimitsOfZeroAreNone) {
  options_.skips = {};
  EXPECT_EQ(failure_after(1'000'000), "");
}

}  // namespace
}  // namespace stoker::engine
