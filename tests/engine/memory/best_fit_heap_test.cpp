// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/best_fit_heap.h"

#include <gtest/gtest.h>

namespace stoker::engine {
namespace {

TEST(BestFitHeapTest, GrowsAtItsEnd) {
  BestFitHeap heap;
  EXPECT_EQ(heap.high_water_mark(), 0);
  EXPECT_EQ(heap.allocate(100), 0);
  EXPECT_EQ(heap.allocate(50), 100);
  EXPECT_EQ(heap.high_water_mark(), 150);
}

TEST(BestFitHeapTest, KeepsItsHeightUntilItIsToldToShrink) {
  BestFitHeap heap;
  heap.allocate(100);
  heap.allocate(50);
  heap.release(100, 50);
  EXPECT_EQ(heap.high_water_mark(), 150) << "the block at its end is free";
  heap.release(0, 100);
  EXPECT_EQ(heap.high_water_mark(), 150) << "all of it is free";
  heap.shrink();
  EXPECT_EQ(heap.high_water_mark(), 0);
}

TEST(BestFitHeapTest, TakesTheSmallestGapThatIsLargeEnough) {
  BestFitHeap heap;
  for (const int64_t bytes : {100, 1, 40, 1, 60, 1}) heap.allocate(bytes);
  heap.release(0, 100);
  heap.release(101, 40);
  heap.release(142, 60);
  EXPECT_EQ(heap.allocate(50), 142);
  EXPECT_EQ(heap.allocate(40), 101);
  EXPECT_EQ(heap.allocate(101), 203) << "no gap is large enough";
}

TEST(BestFitHeapTest, NeighboursBecomeOneGap) {
  for (const int middle : {0, 1, 2}) {  // released last
    BestFitHeap heap;
    for (int i = 0; i < 3; ++i) heap.allocate(10);
    heap.allocate(1);
    for (const int i : {0, 1, 2}) {
      if (i != middle) heap.release(10 * i, 10);
    }
    heap.release(10 * middle, 10);
    EXPECT_EQ(heap.allocate(30), 0) << middle;
  }
}

TEST(BestFitHeapTest, AGapAtTheEndIsLengthened) {
  BestFitHeap heap;
  heap.allocate(10);
  const int64_t last = heap.allocate(20);
  heap.release(last, 20);
  EXPECT_EQ(heap.allocate(30), 10);
  EXPECT_EQ(heap.high_water_mark(), 40);
}

TEST(BestFitHeapTest, ShrinksToItsLastBlock) {
  BestFitHeap heap;
  for (const int64_t bytes : {10, 20, 30}) heap.allocate(bytes);
  heap.release(0, 10);
  heap.shrink();
  EXPECT_EQ(heap.high_water_mark(), 60) << "a block lies at the end";
  heap.release(30, 30);
  heap.shrink();
  EXPECT_EQ(heap.high_water_mark(), 30);
  EXPECT_EQ(heap.allocate(15), 30);
  EXPECT_EQ(heap.allocate(10), 0);
}

TEST(BestFitHeapTest, WhereItMayNotGrowNothingChanges) {
  BestFitHeap heap([](int64_t high_water_mark) { return high_water_mark <= 100; });
  heap.allocate(60);
  const int64_t last = heap.allocate(20);
  heap.release(last, 20);
  EXPECT_EQ(heap.allocate(41), BestFitHeap::kNoOffset);
  EXPECT_EQ(heap.high_water_mark(), 80);
  EXPECT_EQ(heap.allocate(40), 60);
}

}  // namespace
}  // namespace stoker::engine
