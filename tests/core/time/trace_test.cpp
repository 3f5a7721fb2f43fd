// SPDX-License-Identifier: Apache-2.0
#include "core/time/trace.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>
#include <vector>

#include "core/text/json.h"

namespace stoker::core {
namespace {

std::vector<Json> spans_of(const Json& trace) {
  std::vector<Json> spans;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
  }
  return spans;
}

Json taken() { return parse_json(take_trace_json(), "trace"); }

TEST(TraceTest, NothingIsRecordedUntilSomebodyRecords) {
  { const TraceScope scope("lost"); }
  EXPECT_TRUE(spans_of(taken()).empty());
}

TEST(TraceTest, ScopesNestOnTheTrackOfTheirThread) {
  begin_trace(100);
  {
    const TraceScope outer("update", 7);
    const TraceScope inner("forward");
  }
  std::thread([] {
    ::pthread_setname_np(::pthread_self(), "loader-0");
    const TraceScope scope("decode");
  }).join();
  const std::vector<Json> spans = spans_of(taken());
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0]["name"], "update");
  EXPECT_EQ(spans[0]["args"]["number"], 7);
  EXPECT_EQ(spans[1]["name"], "forward");
  EXPECT_LE(spans[0]["ts"].get<double>(), spans[1]["ts"].get<double>());
  EXPECT_GE(spans[0]["ts"].get<double>() + spans[0]["dur"].get<double>() + 0.002,
            spans[1]["ts"].get<double>() + spans[1]["dur"].get<double>());
  EXPECT_EQ(spans[0]["tid"], spans[1]["tid"]);
  EXPECT_NE(spans[0]["tid"], spans[2]["tid"]);
}

TEST(TraceTest, ThreadsHaveTheirNames) {
  begin_trace(100);
  std::string text;
  std::thread([&text] {
    ::pthread_setname_np(::pthread_self(), "loader-3");
    { const TraceScope scope("decode"); }
    text = take_trace_json();  // while the thread lives
  }).join();
  EXPECT_NE(text.find(R"("args": {"name": "loader-3"})"), std::string::npos) << text;
}

TEST(TraceTest, MemoryIsBoundedAndTheRestIsCounted) {
  begin_trace(3);
  for (int i = 0; i < 10; ++i) const TraceScope scope("decode");
  const Json trace = taken();
  EXPECT_EQ(spans_of(trace).size(), 3u);
  EXPECT_EQ(trace["otherData"]["spans_left_out"], 7);
}

TEST(TraceTest, WhatBeginsAfterTheEndIsLeftOutAndWhatADeviceDidBeforeIsNot) {
  begin_trace(10);
  const TraceClock::time_point during = TraceClock::now();
  end_trace();
  { const TraceScope scope("late"); }
  add_device_span("forward", during, during + std::chrono::milliseconds(2), 4);
  const std::vector<Json> spans = spans_of(taken());
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0]["tid"], kDeviceTrack);
  EXPECT_NEAR(spans[0]["dur"].get<double>(), 2000, 0.01);
}

}  // namespace
}  // namespace stoker::core
