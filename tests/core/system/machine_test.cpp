// SPDX-License-Identifier: Apache-2.0
#include "core/system/machine.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/temporary_directory.h"

namespace stoker::core {
namespace {

TEST(MachineTest, FindsCpusAndMemory) {
  const MachineFacts facts = read_machine_facts();
  EXPECT_GE(facts.cpus, 1);
  EXPECT_FALSE(facts.cpus_reason.empty());
  EXPECT_GT(facts.ram_bytes, 100 << 20);
  EXPECT_LE(facts.ram_available_bytes, facts.ram_bytes);
}

/// A folder as /sys/fs/cgroup has it, version 2.
std::string made_cgroup(const fixtures::TemporaryDirectory& place, const std::string& name, const std::string& limit,
                        const std::string& used, const std::string& droppable) {
  place.write(name + "/memory.max", limit + "\n");
  place.write(name + "/memory.current", used + "\n");
  place.write(name + "/memory.stat", "anon 1\ninactive_file " + droppable + "\n");
  return place / name;
}

TEST(MachineTest, WhatACgroupAlreadyUsesIsNotAvailable) {
  const fixtures::TemporaryDirectory place;
  const std::string job = made_cgroup(place, "job", "8000000000", "3000000000", "500000000");
  const std::string user = made_cgroup(place, "user", "max", "9000000000", "0");
  const std::string slice = made_cgroup(place, "slice", "9000000000", "8000000000", "0");
  EXPECT_EQ(cgroup_memory_left({job}), 5'500'000'000);
  EXPECT_EQ(cgroup_memory_left({job, user}), 5'500'000'000) << "no limit, nothing to say";
  EXPECT_EQ(cgroup_memory_left({job, user, slice}), 1'000'000'000) << "a group around it has less left";
  EXPECT_EQ(cgroup_memory_left({user}), std::nullopt);
  EXPECT_EQ(cgroup_memory_left({made_cgroup(place, "full", "10", "20", "0")}), 0);
}

TEST(MachineTest, ResidentMemoryGrowsWithUse) {
  const int64_t before = read_process_memory().resident_bytes;
  const std::vector<char> block(64 << 20, 'x');
  EXPECT_GE(read_process_memory().resident_bytes, before + (60 << 20)) << block.back();
}

TEST(MachineTest, AllocatedBytesGrowAndShrinkWithEachBlock) {
  const std::optional<int64_t> before = read_allocated_bytes();
  if (!before) GTEST_SKIP() << "this C library does not count";
  for (const size_t bytes : {size_t{64} << 20, size_t{20'000}}) {
    {
      const std::vector<char> block(bytes, 'x');
      EXPECT_GE(*read_allocated_bytes(), *before + static_cast<int64_t>(bytes)) << block.back();
    }
    EXPECT_LT(*read_allocated_bytes(), *before + 4096);
  }
}

TEST(MachineTest, CpuSecondsGrowWithWork) {
  const double before = read_process_cpu_seconds();
  volatile double sink = 0;
  while (read_process_cpu_seconds() < before + 0.01) sink = sink + 1;
  EXPECT_GT(read_process_cpu_seconds(), before);
}

}  // namespace
}  // namespace stoker::core
