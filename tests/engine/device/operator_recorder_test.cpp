// SPDX-License-Identifier: Apache-2.0
#include "engine/device/operator_recorder.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/profiler/api.h>

#include <algorithm>
#include <stdexcept>

namespace stoker::engine {
namespace {

OperatorRow recorded_row(const OperatorTable& table, const std::string& name) {
  for (const OperatorRow& found : table.rows(OperatorTable::By::name)) {
    if (found.name == name) return found;
  }
  return {name, "", 0};
}

/// Two products with what they call.
void multiply() {
  const at::Tensor a = at::ones({32, 64}), b = at::ones({64, 16});
  at::matmul(at::matmul(a, b), at::ones({16, 8}));
}

TEST(OperatorRecorderTest, RecordsAsManyUpdatesAsItIsToldBehindThoseThatItLeavesOut) {
  OperatorRecorder recorder(torch::kCPU, /*may_use_events=*/false);
  recorder.begin(/*skipped=*/2, /*count=*/3);
  int recorded = 0;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(recorder.is_done(), i >= 5) << i;
    recorder.update([&] {
      recorded += torch::profiler::impl::profilerEnabled();
      if (i < 2) at::relu(at::ones({4}));
      multiply();
    });
  }
  EXPECT_EQ(recorded, 3);
  const OperatorTable& table = recorder.table();
  EXPECT_EQ(table.updates(), 3);
  EXPECT_DOUBLE_EQ(recorded_row(table, "aten::matmul").calls, 2);
  EXPECT_DOUBLE_EQ(recorded_row(table, "aten::mm").calls, 2);
  EXPECT_EQ(recorded_row(table, "aten::relu").calls, 0) << "only updates that were left out called it";
  double own = 0;
  for (const OperatorRow& one : table.rows(OperatorTable::By::name)) own += one.own_seconds;
  EXPECT_GT(own, 0);
  EXPECT_GE(recorded_row(table, "aten::matmul").total_seconds, recorded_row(table, "aten::mm").total_seconds);
}

TEST(OperatorRecorderTest, ShapesOfInputsAreKnown) {
  OperatorRecorder recorder(torch::kCPU, /*may_use_events=*/false);
  recorder.begin(0, 1);
  recorder.update(multiply);
  std::vector<std::string> shapes;
  for (const OperatorRow& one : recorder.table().rows(OperatorTable::By::name_and_shapes)) {
    if (one.name == "aten::mm") shapes.push_back(one.shapes);
  }
  std::sort(shapes.begin(), shapes.end());
  EXPECT_EQ(shapes, (std::vector<std::string>{"32x16 16x8", "32x64 64x16"}));
}

TEST(OperatorRecorderTest, AnUpdateThatThrowsIsNotRecordedAndLeavesNoProfilerBehind) {
  OperatorRecorder recorder(torch::kCPU, /*may_use_events=*/false);
  recorder.begin(0, 1);
  EXPECT_THROW(recorder.update([] { throw std::runtime_error("stopped"); }), std::runtime_error);
  EXPECT_FALSE(torch::profiler::impl::profilerEnabled());
  EXPECT_FALSE(recorder.is_done());
  recorder.update(multiply);
  EXPECT_TRUE(recorder.is_done());
  EXPECT_EQ(recorder.table().updates(), 1);
}

}  // namespace
}  // namespace stoker::engine
