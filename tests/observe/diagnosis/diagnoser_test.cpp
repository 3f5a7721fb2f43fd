// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/diagnosis.h"

#include <gtest/gtest.h>

#include "core/log.h"
#include "core/system/stop_signal.h"

namespace stoker::observe {
namespace {

using engine::StepPart;

/// Updates of 10 ms of which `report_ms` go to reports and `save_ms` to checkpoints; the network takes the rest.
engine::StepTimings window(double report_ms, double save_ms = 0) {
  engine::StepTimings times;
  times.updates = 300;
  times.seconds = times.wall_seconds = 3;
  times.update.mean_seconds = 0.010;
  times.parts[StepPart::report].mean_seconds = 1e-3 * report_ms;
  times.parts[StepPart::save].mean_seconds = 1e-3 * save_ms;
  times.parts[StepPart::forward].mean_seconds = 1e-3 * (10 - report_ms - save_ms);
  times.training_cpu_seconds = times.process_cpu_seconds = 300e-3 * (10 - report_ms - save_ms);
  return times;
}

engine::Interlude interlude(const engine::StepTimings& times, engine::Interlude::After after, double seconds = 1) {
  engine::Interlude between;
  between.after = after;
  between.times = times;
  between.seconds_allowed = seconds;
  return between;
}

class DiagnoserTest : public ::testing::Test {
 protected:
  DiagnoserTest() {
    core::set_console_writer([this](core::LogLevel, std::string_view line) { printed_.emplace_back(line); });
  }
  ~DiagnoserTest() override { core::set_console_writer(nullptr); }
  const std::optional<Diagnosis>& report(Diagnoser& diagnoser, const engine::StepTimings& times) const {
    return diagnoser.judge(interlude(times, engine::Interlude::After::report_interval), {}, probes_);
  }
  ThroughputProbes probes_;
  std::vector<std::string> printed_;
};

TEST_F(DiagnoserTest, PrintsAVerdictOnceAndANewOneAgain) {
  Diagnoser diagnoser({});
  EXPECT_FALSE(report(diagnoser, window(4)));
  EXPECT_TRUE(printed_.empty()) << "the first window warms up";
  report(diagnoser, window(4));
  ASSERT_EQ(printed_.size(), 1u);
  EXPECT_EQ(
      printed_[0].rfind("diagnosis: sync-bound (reporting takes 4ms of each update's 10ms): --report-every 5s", 0), 0u)
      << printed_[0];
  report(diagnoser, window(4.1));
  EXPECT_EQ(printed_.size(), 1u);
  report(diagnoser, window(0, 5));
  ASSERT_EQ(printed_.size(), 2u);
  EXPECT_NE(printed_[1].find("checkpoint-bound"), std::string::npos);
}

TEST_F(DiagnoserTest, KeepsQuietWhenThereIsLittleToGain) {
  Diagnoser diagnoser({});
  for (int i = 0; i < 2; ++i) report(diagnoser, window(0.7));
  const std::optional<Diagnosis> last = report(diagnoser, window(0.7));
  EXPECT_TRUE(printed_.empty());
  ASSERT_TRUE(last);
  EXPECT_EQ(last->verdict, Verdict::sync);
  EXPECT_NEAR(last->gain_percent, 7.5, 0.1);
}

TEST_F(DiagnoserTest, MeasuresCeilingsOnlyWhenThereIsReasonTo) {
  int requested_threads = 0, asked_bfloat16 = 0, asked_fixed = 0;
  probes_.pass_seconds = [&](int64_t, int64_t) { return ++requested_threads, 1.0; };
  probes_.bfloat16_speed = [&] { return ++asked_bfloat16, 2.0; };
  probes_.overhead_seconds = [&] { return ++asked_fixed, 0.0; };
  DiagnosisFacts known;
  known.threads = 2;
  known.cpus = 2;
  Diagnoser diagnoser(known);
  engine::StepTimings waits = window(0);
  waits.parts[StepPart::forward].mean_seconds = 0.001;
  waits.parts[StepPart::wait].mean_seconds = 0.009;
  for (int i = 0; i < 3; ++i) report(diagnoser, waits);
  EXPECT_EQ(requested_threads + asked_bfloat16 + asked_fixed, 0);
  for (int i = 0; i < 3; ++i) report(diagnoser, window(0));
  EXPECT_EQ(requested_threads, 0) << "nobody competes, and there are as many threads as CPUs";
  EXPECT_EQ(asked_bfloat16, 1);
  EXPECT_EQ(asked_fixed, 1);
}

TEST_F(DiagnoserTest, MoreThreadsAreTriedOnlyWhereOthersLeaveCpus) {
  const auto tried_beside = [&](double others) {
    int tried = 0;
    probes_.pass_seconds = [&](int64_t, int64_t) { return ++tried, 1.0; };
    DiagnosisFacts known;
    known.threads = 1;
    known.cpus = 2;
    Diagnoser diagnoser(known);
    ResourceReading resources;
    resources.cpu_percent = 30;
    resources.other_cpus = others;
    for (int i = 0; i < 2; ++i)
      diagnoser.judge(interlude(window(0), engine::Interlude::After::report_interval), resources, probes_);
    return tried;
  };
  EXPECT_EQ(tried_beside(0), 1);
  EXPECT_EQ(tried_beside(1.4), 0);
}

TEST_F(DiagnoserTest, OfALongBatchSomeImagesAreComputedWithOtherThreads) {
  int64_t images = 0;
  probes_.pass_seconds = [&](int64_t threads, int64_t tried) {
    images = tried;
    return threads == 2 ? 0.05 : 1;
  };
  DiagnosisFacts known;
  known.threads = 16;
  known.cpus = 2;
  known.batch_size = 64;
  Diagnoser diagnoser(known);
  engine::StepTimings times = window(0);
  times.update.mean_seconds = 1;
  times.parts[StepPart::forward].mean_seconds = 0.8;
  for (int i = 0; i < 2; ++i) report(diagnoser, times);
  const std::optional<Diagnosis> last = report(diagnoser, times);
  EXPECT_EQ(images, 8) << "0.1 of 0.8 seconds";
  ASSERT_TRUE(last);
  EXPECT_EQ(last->verdict, Verdict::oversubscribed_threads);
  EXPECT_NE(diagnosis_text(*last).find("16 threads compute a batch in 800ms, 2 in 400ms"), std::string::npos)
      << diagnosis_text(*last);
}

TEST_F(DiagnoserTest, OfALongUpdateTheFixedPartIsNotAskedFor) {
  int asked = 0;
  probes_.overhead_seconds = [&] { return ++asked, 0.0; };
  Diagnoser diagnoser({});
  engine::StepTimings times = window(0);
  times.update.mean_seconds = 1;
  times.parts[StepPart::forward].mean_seconds = 0.9;
  for (int i = 0; i < 3; ++i) report(diagnoser, times);
  EXPECT_EQ(asked, 0);
}

TEST_F(DiagnoserTest, AStopRequestEndsTheProbesAndNotTheVerdict) {
  int asked = 0;
  probes_.overhead_seconds = [&]() -> double { throw(++asked, core::StopRequested{}); };
  probes_.bfloat16_speed = [&] { return ++asked, 2.0; };
  Diagnoser diagnoser({});
  report(diagnoser, window(0));
  EXPECT_TRUE(report(diagnoser, window(0)));
  EXPECT_EQ(asked, 1) << "no other probe is begun";
}

TEST_F(DiagnoserTest, AProbeThatFailsEndsNeitherTheRunNorTheVerdictAndNoneIsAskedAgain) {
  int asked = 0;
  probes_.overhead_seconds = [&]() -> double { throw(++asked, std::runtime_error("CUDA out of memory")); };
  probes_.bfloat16_speed = probes_.overhead_seconds;
  Diagnoser diagnoser({});
  for (int i = 0; i < 3; ++i) report(diagnoser, window(4));
  EXPECT_TRUE(report(diagnoser, window(4)));
  EXPECT_EQ(asked, 1);
}

TEST_F(DiagnoserTest, NothingIsMeasuredWithoutTimeThatIsAllowed) {
  int asked = 0;
  probes_.overhead_seconds = probes_.bfloat16_speed = [&] { return ++asked, 2.0; };
  Diagnoser diagnoser({});
  const engine::Interlude no_time = interlude(window(0), engine::Interlude::After::epoch, /*seconds=*/0);
  EXPECT_TRUE(diagnoser.judge(no_time, {}, probes_));
  EXPECT_EQ(asked, 0);
}

TEST_F(DiagnoserTest, JudgesAWindowOfEnoughUpdatesAndSeconds) {
  Diagnoser diagnoser({});
  engine::Interlude epoch = interlude(window(4), engine::Interlude::After::epoch);
  epoch.times.updates = 5;
  EXPECT_FALSE(diagnoser.judge(epoch, {}, probes_));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(report(diagnoser, epoch.times));
  epoch.times.updates = 100;
  epoch.times.seconds = 0.4;
  EXPECT_FALSE(diagnoser.judge(epoch, {}, probes_));
  epoch.times.seconds = 3;
  const std::optional<Diagnosis> judged = diagnoser.judge(epoch, {}, probes_);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->verdict, Verdict::sync);
}

}  // namespace
}  // namespace stoker::observe
