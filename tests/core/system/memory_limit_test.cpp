// SPDX-License-Identifier: Apache-2.0
#include "core/system/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace stoker::core {
namespace {

/// Whether so much could be had; none of it is touched. volatile: a compiler may leave an unused block out.
bool can_allocate(int64_t bytes) {
  void* volatile block = std::malloc(static_cast<size_t>(bytes));
  std::free(block);
  return block != nullptr;
}

TEST(MemoryLimitTest, MoreThanIsFreeCannotBeAllocatedWhileItLives) {
  const int64_t available = read_machine_facts().ram_available_bytes;
  if (available == 0) GTEST_SKIP() << "the machine does not report how much is free";
  constexpr int64_t kGigabyte = 1'000'000'000;
  {
    const MemoryLimit limit;
    EXPECT_FALSE(can_allocate(available + kGigabyte));
    EXPECT_TRUE(can_allocate(1'000'000));
  }
  rlimit after{};
  ::getrlimit(RLIMIT_DATA, &after);
  EXPECT_GT(after.rlim_cur, static_cast<rlim_t>(available) + kGigabyte) << "the bound goes with the object";
}

}  // namespace
}  // namespace stoker::core
