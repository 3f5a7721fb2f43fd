// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/time_figures.h"

#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

using engine::StepPart;

engine::StepTimings split() {
  engine::StepTimings times;
  times.updates = 100;
  times.update = {100, 0.0123, 0.0151, 0.0402};
  times.parts[StepPart::wait] = {100, 0.0041, 0.0052, 0.0301};
  times.parts[StepPart::forward] = {100, 0.0082, 0.0085, 0.0091};
  times.parts[StepPart::save] = {100, 0.00001, 0.00001, 0.00001};
  times.sample.decode = {6400, 0.0011, 0.0019, 0.0098};
  times.loader.batches_requested = 100;
  times.loader.ready_when_requested = 320;
  times.loader.empty_when_requested = 25;
  times.loader.batches_capacity = 5;
  return times;
}

TEST(TimeFiguresTest, SecondsHaveThreeDigitsAndTheUnitThatFits) {
  EXPECT_EQ(short_seconds_text(0.0000354), "35us");
  EXPECT_EQ(short_seconds_text(0.01234), "12.3ms");
  EXPECT_EQ(short_seconds_text(0.1234), "123ms");
  EXPECT_EQ(short_seconds_text(1.234), "1.23s");
  EXPECT_EQ(short_seconds_text(1234), "1234s");
}

TEST(TimeFiguresTest, AStepIsOneShortPhraseWithMeanPercentileAndMaximum) {
  EXPECT_EQ(step_text(split()), "step 12.3ms (95% 15.1ms, max 40.2ms)");
  EXPECT_EQ(step_text({}), "");
}

TEST(TimeFiguresTest, LinesNameThePartsThatTookTimeAndLeaveOutTheOthers) {
  const std::vector<std::string> lines = time_lines(split());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "step 12.3ms (95% 15.1ms, max 40.2ms):  wait 33% 4.1ms (95% 5.2ms, max 30.1ms)  "
            "forward 67% 8.2ms (95% 8.5ms, max 9.1ms)");
  EXPECT_EQ(lines[1], "sample:  decode 1.1ms (95% 1.9ms, max 9.8ms)  queue 3.2 of 5 batches, empty 25%");
}

TEST(TimeFiguresTest, JsonHasEveryPartAndNoDeviceWhereThereIsNone) {
  const core::Json json = time_json(split());
  EXPECT_EQ(json["parts"].size(), engine::kStepParts);
  EXPECT_EQ(json["parts"]["wait"]["p95_seconds"], 0.0052);
  EXPECT_EQ(json["queue"]["mean_batches"], 3.2);
  EXPECT_EQ(json["queue"]["empty_share"], 0.25);
  EXPECT_FALSE(json.contains("device"));
}

}  // namespace
}  // namespace stoker::observe
