// SPDX-License-Identifier: Apache-2.0
#include "core/machine.h"

#include <gtest/gtest.h>

#include <vector>

namespace stoker::core {
namespace {

TEST(MachineTest, FindsCpusAndMemory) {
  const MachineFacts facts = read_machine_facts();
  EXPECT_GE(facts.cpus, 1);
  EXPECT_FALSE(facts.cpus_reason.empty());
  EXPECT_GT(facts.ram_bytes, 100 << 20);
  EXPECT_LE(facts.ram_available_bytes, facts.ram_bytes);
}

TEST(MachineTest, ResidentMemoryGrowsWithUse) {
  const int64_t before = read_process_memory().resident_bytes;
  const std::vector<char> block(64 << 20, 'x');
  EXPECT_GE(read_process_memory().resident_bytes, before + (60 << 20)) << block.back();
}

TEST(MachineTest, CpuSecondsGrowWithWork) {
  const double before = read_process_cpu_seconds();
  volatile double sink = 0;
  while (read_process_cpu_seconds() < before + 0.01) sink = sink + 1;
  EXPECT_GT(read_process_cpu_seconds(), before);
}

}  // namespace
}  // namespace stoker::core
