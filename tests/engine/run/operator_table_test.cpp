// SPDX-License-Identifier: Apache-2.0
#include "engine/run/operator_table.h"

#include <gtest/gtest.h>

namespace stoker::engine {
namespace {

constexpr uint64_t kTraining = 1, kOther = 2;
using By = OperatorTable::By;

/// A call from `begin` to `end`, in milliseconds.
OperatorCall call(const std::string& name, uint64_t id, int64_t begin, int64_t end, const std::string& shapes = "",
                  uint64_t thread = kTraining) {
  return {name, shapes, id, thread, 1'000'000 * begin, 1'000'000 * end, 1e-3 * static_cast<double>(end - begin), -1};
}

OperatorRow row(const OperatorTable& table, const std::string& name, By by = By::name, const std::string& shapes = "") {
  for (const OperatorRow& found : table.rows(by)) {
    if (found.name == name && found.shapes == shapes) return found;
  }
  ADD_FAILURE() << "no row of " << name << " " << shapes;
  return {};
}

TEST(OperatorTableTest, OwnTimeLacksWhatAnOperatorCalled) {
  OperatorTable table;
  table.add_update(0.030, kTraining,
                   {call("linear", 1, 0, 10), call("t", 2, 1, 3), call("mm", 3, 3, 9), call("relu", 4, 12, 16)}, {});
  EXPECT_DOUBLE_EQ(row(table, "linear").total_seconds, 0.010);
  EXPECT_DOUBLE_EQ(row(table, "linear").own_seconds, 0.002) << "t and mm begin where another ends, within linear";
  EXPECT_DOUBLE_EQ(row(table, "mm").own_seconds, 0.006);
  EXPECT_DOUBLE_EQ(row(table, OperatorTable::kOutside).own_seconds, 0.016);
  EXPECT_EQ(table.rows(By::name).front().name, OperatorTable::kOutside) << "the largest first";
  EXPECT_EQ(table.rows(By::name).back().own_seconds, 0.002);
}

TEST(OperatorTableTest, FiguresAreThoseOfOneUpdate) {
  OperatorTable table;
  table.add_update(0.010, kTraining, {call("mm", 1, 0, 4), call("mm", 2, 5, 7)}, {});
  table.add_update(0.020, kTraining, {call("mm", 1, 0, 10), call("mm", 2, 10, 12)}, {});
  EXPECT_EQ(table.updates(), 2);
  EXPECT_DOUBLE_EQ(table.seconds(), 0.015);
  EXPECT_DOUBLE_EQ(row(table, "mm").calls, 2);
  EXPECT_DOUBLE_EQ(row(table, "mm").total_seconds, 0.009);
}

TEST(OperatorTableTest, ACallFromWithinItselfIsInTheTotalOnce) {
  OperatorTable table;
  table.add_update(0.010, kTraining, {call("sum", 1, 0, 8, "4x4"), call("sum", 2, 1, 7, "2x8")}, {});
  EXPECT_DOUBLE_EQ(row(table, "sum").total_seconds, 0.008);
  EXPECT_DOUBLE_EQ(row(table, "sum").own_seconds, 0.008);
  EXPECT_DOUBLE_EQ(row(table, "sum", By::name_and_shapes, "4x4").total_seconds, 0.008);
  EXPECT_DOUBLE_EQ(row(table, "sum", By::name_and_shapes, "2x8").total_seconds, 0.006);
  EXPECT_DOUBLE_EQ(row(table, "sum", By::name_and_shapes, "4x4").own_seconds, 0.002);
}

TEST(OperatorTableTest, ThreadsAtTheSameTimeDoNotCallEachOther) {
  OperatorTable table;
  table.add_update(0.010, kTraining, {call("conv", 1, 0, 8), call("mm", 2, 1, 7, "", kOther)}, {});
  EXPECT_DOUBLE_EQ(row(table, "conv").own_seconds, 0.008);
  EXPECT_DOUBLE_EQ(row(table, "mm").own_seconds, 0.006);
  EXPECT_DOUBLE_EQ(row(table, OperatorTable::kOutside).own_seconds, 0.002) << "of the training thread alone";
}

TEST(OperatorTableTest, KernelsBelongToTheOperatorThatLaunchedThemAndToItsCallers) {
  OperatorTable table;
  table.add_update(0.010, kTraining, {call("linear", 1, 0, 4), call("mm", 2, 1, 3), call("relu", 3, 4, 5)},
                   {{"gemm", 2, 0.005}, {"bias", 1, 0.001}, {"clamp", 3, 0.002}, {"replayed", 77, 0.003}});
  ASSERT_TRUE(table.has_device());
  EXPECT_DOUBLE_EQ(row(table, "linear").device_total_seconds, 0.006);
  EXPECT_DOUBLE_EQ(row(table, "linear").device_own_seconds, 0.001);
  EXPECT_DOUBLE_EQ(row(table, "mm").device_own_seconds, 0.005);
  EXPECT_DOUBLE_EQ(row(table, "replayed").device_own_seconds, 0.003) << "launched by no operator";
  EXPECT_EQ(table.rows(By::name).front().name, "mm") << "the device's time decides about the order";
}

TEST(OperatorTableTest, EventsAroundOperatorsCountTheirCalleesOnce) {
  OperatorTable table;
  OperatorCall outer = call("linear", 1, 0, 4), inner = call("mm", 2, 1, 3);
  outer.device_seconds = 0.007;
  inner.device_seconds = 0.005;
  table.add_update(0.010, kTraining, {outer, inner}, {});
  ASSERT_TRUE(table.has_device());
  EXPECT_DOUBLE_EQ(row(table, "linear").device_own_seconds, 0.002);
  EXPECT_DOUBLE_EQ(row(table, "linear").device_total_seconds, 0.007);
  EXPECT_DOUBLE_EQ(row(table, "mm").device_total_seconds, 0.005);
}

}  // namespace
}  // namespace stoker::engine
