// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/hardware.h"

#include <gtest/gtest.h>

#include "tests/temporary_directory.h"

namespace stoker::observe {
namespace {

/// Two sockets with two cores of two threads each; a node for each socket; a card at the second.
void write_sys(const fixtures::TemporaryDirectory& sys, const std::string& governor_of_the_last) {
  const std::string cpus = "devices/system/cpu/", nodes = "devices/system/node/";
  sys.write(cpus + "online", "0-7\n");
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string folder = cpus + "cpu" + std::to_string(cpu);
    sys.write(folder + "/topology/core_id", std::to_string(cpu % 2) + "\n");
    sys.write(folder + "/topology/physical_package_id", std::to_string(cpu / 4) + "\n");
    sys.write(folder + "/cpufreq/scaling_governor", cpu == 7 ? governor_of_the_last : "performance\n");
  }
  sys.write(nodes + "online", "0-1\n");
  sys.write(nodes + "node1/cpulist", "4-6,7\n");
  sys.write("bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
  sys.write("bus/pci/devices/0000:5e:00.0/numa_node", "-1\n");
}

bool has(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(HardwareTest, ProcessorsAndTheNodeOfACardAreReadFromTheKernel) {
  const fixtures::TemporaryDirectory sys;
  write_sys(sys, "powersave\n");
  const HostFacts host = read_host_facts(sys.path());
  EXPECT_EQ(hardware_json(host_facts(host)),
            (core::Json{{"sockets", 2}, {"physical_cores", 4}, {"numa_nodes", 2}, {"governor", "powersave"}}));
  EXPECT_EQ(hardware_lines("host", host_facts(host)),
            std::vector<std::string>{"host      2 sockets, 4 physical cores, 2 NUMA nodes, governor powersave"});
  EXPECT_TRUE(has(host_warnings(host), "cpupower frequency-set -g performance"));
  EXPECT_EQ(node_of_card("00000000:3b:00.0", sys.path()), 1);
  EXPECT_FALSE(node_of_card("00000000:5e:00.0", sys.path())) << "the machine has no nodes for it";
  EXPECT_FALSE(node_of_card("", sys.path()));
  EXPECT_EQ(cpus_of_node(1, sys.path()), (std::vector<int>{4, 5, 6, 7}));
  write_sys(sys, "performance\n");
  EXPECT_TRUE(host_warnings(read_host_facts(sys.path())).empty());
}

TEST(HardwareTest, WithoutTheFilesNothingIsKnown) {
  const HostFacts host = read_host_facts("/nowhere");
  EXPECT_TRUE(host_facts(host).empty());
  EXPECT_TRUE(hardware_lines("host", host_facts(host)).empty());
}

TEST(HardwareTest, WhatCostsSpeedIsNamedWithTheCommandThatMendsIt) {
  const Nvml nvml(STOKER_FAKE_NVML);
  const CardFacts card = nvml.cards().at(0);
  const std::vector<std::string> all = card_warnings(card, 1, {0, 1}, {4, 5});
  for (const char* const part :
       {"sudo nvidia-smi -i 00000000:3b:00.0 -pm 1", "4 of 16 PCIe lanes", "numactl --cpunodebind=1 --membind=1",
        "nvidia-smi -i 00000000:3b:00.0 -rgc", "slowed by power cap and heat", "nvidia-smi -i 00000000:3b:00.0 -r,",
        "another process computes on this card"}) {
    EXPECT_TRUE(has(all, part)) << part;
  }
  EXPECT_FALSE(has(card_warnings(card, 1, {0, 4}, {4, 5}), "numactl"));
  EXPECT_TRUE(card_warnings(nvml.cards().at(1), std::nullopt, {0}, {}).empty());
}

TEST(HardwareTest, LinesAreBrokenBetweenFacts) {
  const Nvml nvml(STOKER_FAKE_NVML);
  const std::vector<std::string> lines = hardware_lines("card", card_facts(nvml.cards().at(0), 1), 80);
  EXPECT_GT(lines.size(), 3u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_EQ(lines[0].rfind("card      compute capability 8.9, at 00000000:3b:00.0", 0), 0u) << lines[0];
  EXPECT_EQ(lines[1].rfind("          ", 0), 0u) << lines[1];
  EXPECT_TRUE(has(lines, "memory clock 9000 MHz of 9501")) << lines[1];
}

TEST(HardwareTest, DriverAndLibrariesAreOneLine) {
  DriverFacts driver = driver_facts(Nvml(STOKER_FAKE_NVML));
  driver.cuda_runtime = "12.1";
  driver.cudnn = "8.9.2";
  EXPECT_EQ(driver_text(driver), "NVIDIA 535.183.01 (CUDA 12.2), CUDA runtime 12.1, cuDNN 8.9.2");
  EXPECT_EQ(driver_text(driver_facts(Nvml("/nowhere.so"))), "n/a (/nowhere.so cannot be loaded: no NVIDIA driver)");
}

}  // namespace
}  // namespace stoker::observe
