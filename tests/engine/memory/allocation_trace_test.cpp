// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/allocation_trace.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace stoker::engine {
namespace {

TEST(AllocationTraceTest, BlocksAreNotedWhenTheyComeAndWhenTheyGo) {
  const at::Tensor before = at::zeros({1000});
  at::Tensor kept;
  const AllocationTrace trace = trace_allocations([&] {
    at::Tensor gone = at::empty({256});  // float32
    gone = at::Tensor();
    kept = at::empty({100});
    at::Tensor(before).zero_();
  });
  EXPECT_EQ(trace, (AllocationTrace{1024, -1024, 400}));
  EXPECT_EQ(peak_bytes(trace), 1024);
  kept.fill_(1);  // a block may outlive its trace
  kept = at::Tensor();
  EXPECT_EQ(trace_allocations([] {}), AllocationTrace{});
}

TEST(AllocationTraceTest, AfterAnExceptionTensorsAreMadeAsBefore) {
  EXPECT_THROW(trace_allocations([] { throw std::runtime_error("no"); }), std::runtime_error);
  const AllocationTrace trace = trace_allocations([] { at::empty({2}); });
  EXPECT_EQ(trace, (AllocationTrace{8, -8}));
}

TEST(AllocationTraceTest, OtherThreadsAreNotedAsWell) {
  const AllocationTrace trace = trace_allocations([] { std::thread([] { at::empty({2}); }).join(); });
  EXPECT_EQ(trace.size(), 2u);
}

TEST(AllocationTraceTest, EachBlockGrowsByItselfSoThatTheWorstMomentMayMove) {
  // Weights' gradients of 100 at the end; activations of 10 per image at the beginning.
  const TracedWork two{2, {20, -20, 100, -100}}, four{4, {40, -40, 100, -100}};
  EXPECT_EQ(extrapolated_peak(two, four, 8), 100);
  EXPECT_EQ(extrapolated_peak(two, four, 50), 500);
  EXPECT_EQ(extrapolated_peak(two, four, 2), peak_bytes(two.trace));
}

constexpr int64_t kMiB = 1 << 20;

TEST(AllocationTraceTest, GapsOfWorkingMemoryCountToo) {
  // Two blocks of 10 go, a third between them stays: 20 do not fit into either gap.
  const TracedWork two{
      2,
      {10 * kMiB, 4 * kMiB, 10 * kMiB, 4 * kMiB, -10 * kMiB, -10 * kMiB, 20 * kMiB, -20 * kMiB, -4 * kMiB, -4 * kMiB}};
  const TracedWork four{4, two.trace};
  EXPECT_EQ(extrapolated_peak(two, four, 8), 28 * kMiB);
  EXPECT_EQ(arena_high_water_mark({{two, four, 8}}), 48 * kMiB);
}

TEST(AllocationTraceTest, PassesUseTheSameMemory) {
  const TracedWork two{2, {2 * kMiB, -2 * kMiB}}, four{4, {4 * kMiB, -4 * kMiB}};
  EXPECT_EQ(arena_high_water_mark({{two, four, 8}, {two, four, 3}, {two, four, 0}, {two, four, 6}}), 8 * kMiB);
  const TracedWork kept{2, {kMiB}}, kept_too{4, {kMiB}};
  EXPECT_EQ(arena_high_water_mark({{kept, kept_too, 8}, {two, four, 8}}), 8 * kMiB) << "a pass gives all of it back";
}

TEST(AllocationTraceTest, SmallBlocksAreNotOfWorkingMemory) {
  const TracedWork two{2, {100, -100}}, four{4, {200, -200}};
  EXPECT_EQ(arena_high_water_mark({{two, four, 8}}), 0);
  EXPECT_EQ(arena_high_water_mark({{two, four, 1000}}), 50048) << "whole cache lines";
}

TEST(AllocationTraceTest, TracesOfDifferentLengthAreExtendedByTheirPeaks) {
  const TracedWork two{2, {30, -30}}, four{4, {20, 30, -50}};
  EXPECT_EQ(extrapolated_peak(two, four, 10), 110);
}

TEST(AllocationTraceTest, NoNumberOfImagesTakesLessThanWasSeen) {
  const TracedWork first{16, {1000}}, second{32, {900}};  // the first pass also held what a library takes once
  EXPECT_EQ(extrapolated_peak(first, second, 1000), 1000);
  EXPECT_EQ(extrapolated_peak(first, second, 16), 1000);
  EXPECT_EQ(extrapolated_peak(first, second, 4), 1000);
  const TracedWork flat{16, {100}}, steep{32, {500}};
  EXPECT_EQ(extrapolated_peak(flat, steep, 4), 25) << "a share of 100, not 100 less three quarters of 400";
  const TracedWork longer{32, {400, 500, -900}};
  EXPECT_EQ(extrapolated_peak(first, longer, 1000), 1000) << "traces of different length";
}

}  // namespace
}  // namespace stoker::engine
