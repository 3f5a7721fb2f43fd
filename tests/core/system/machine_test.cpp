// SPDX-License-Identifier: Apache-2.0
#include "core/system/machine.h"

#include <gtest/gtest.h>
#include <time.h>

#include <string>
#include <thread>
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

TEST(MachineTest, Bfloat16IsNotNativeWhereOnednnMayNotUseIt) {
  const char* const before = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string kept = before ? before : "";
  for (const char* isa : {"AVX2", "AVX512_CORE"}) {
    ::setenv("ONEDNN_MAX_CPU_ISA", isa, /*overwrite=*/1);
    EXPECT_FALSE(read_machine_facts().native_bfloat16) << isa;
  }
  if (before) {
    ::setenv("ONEDNN_MAX_CPU_ISA", kept.c_str(), 1);
  } else {
    ::unsetenv("ONEDNN_MAX_CPU_ISA");
  }
}

TEST(MachineTest, WhatACgroupAlreadyUsesIsNotAvailable) {
  const fixtures::TemporaryDirectory place;
  const std::string job = made_cgroup(place, "job", "8000000000", "3000000000", "500000000");
  const std::string user = made_cgroup(place, "user", "max", "9000000000", "0");
  const std::string slice = made_cgroup(place, "slice", "9000000000", "8000000000", "0");
  EXPECT_EQ(cgroup_memory_left({job}), 5'500'000'000);
  EXPECT_EQ(cgroup_memory_left({job, user}), 5'500'000'000) << "no limit, nothing to report";
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

/// The kernel's own count, in seconds.
double seconds_of(clockid_t clock) {
  timespec time{};
  EXPECT_EQ(::clock_gettime(clock, &time), 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Works until the calling thread has used so much CPU time.
void use_the_cpu(double seconds) {
  const double end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds;
  volatile double sink = 0;
  while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end) sink = sink + 1;
}

TEST(MachineTest, CpuSecondsOfTheProcessAreThoseOfAllItsThreads) {
  const double outer = seconds_of(CLOCK_PROCESS_CPUTIME_ID), before = read_process_cpu_seconds();
  const double here = read_thread_cpu_seconds();
  std::thread(use_the_cpu, 0.05).join();
  use_the_cpu(0.03);
  const double grown = read_process_cpu_seconds() - before, grown_here = read_thread_cpu_seconds() - here;
  EXPECT_GE(grown, 0.08 - 0.001) << "50 ms of another thread, 30 of this one";
  EXPECT_LE(grown, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - outer + 0.001) << "no more than the process has used";
  EXPECT_GE(grown_here, 0.03);
  EXPECT_LE(grown_here, grown - 0.05 + 0.001) << "work of other threads is not its own";
}

}  // namespace
}  // namespace stoker::core
