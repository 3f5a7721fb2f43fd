// SPDX-License-Identifier: Apache-2.0
#include "core/system/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

namespace stoker::core {
namespace {

TEST(WorkerPoolTest, WaitReturnsWhatTheFirstFailedThreadThrew) {
  WorkerPool pool;
  std::atomic<int> done{0};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pool.add([&] { ++done; }));
  EXPECT_EQ(pool.size(), 3);
  EXPECT_EQ(pool.wait(), nullptr);
  EXPECT_EQ(done, 3);
  ASSERT_TRUE(pool.add([] { throw std::runtime_error("one"); }));
  const std::exception_ptr failure = pool.wait();
  ASSERT_NE(failure, nullptr);
  EXPECT_THROW(std::rethrow_exception(failure), std::runtime_error);
  EXPECT_EQ(pool.wait(), nullptr) << "it was reported once";
}

TEST(WorkerPoolTest, EachIndexIsVisitedOnceWhateverTheThreads) {
  for (const int64_t threads : {0, 1, 3, 8}) {
    for (const int64_t count : {0, 1, 5, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
      std::atomic<int> makers{0};
      for_each_index(count, threads, [&] {
        ++makers;
        return [&](int64_t index) { ++visits[static_cast<size_t>(index)]; };
      });
      for (const auto& visited : visits) ASSERT_EQ(visited, 1) << count << " on " << threads;
      EXPECT_LE(makers, std::max<int64_t>(1, threads));
    }
  }
}

TEST(WorkerPoolTest, AVisitThatThrowsEndsAllAndIsRethrown) {
  for (const int64_t threads : {1, 4}) {
    std::atomic<int64_t> visits{0};
    const auto make_visit = [&] {
      return [&](int64_t index) {
        ++visits;
        if (index == 10) throw std::runtime_error("ten");
      };
    };
    EXPECT_THROW(for_each_index(100'000'000, threads, make_visit), std::runtime_error);
    EXPECT_LT(visits, 100'000'000);
  }
}

}  // namespace
}  // namespace stoker::core
