// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/nvml.h"

#include <gtest/gtest.h>

#include "observe/resources/hardware.h"
#include "observe/resources/resources.h"

namespace stoker::observe {
namespace {

using Words = std::vector<std::string>;

TEST(NvmlTest, ReadsEveryFigureInItsUnit) {
  Nvml nvml(STOKER_FAKE_NVML);
  ASSERT_EQ(nvml.failure(), "");
  EXPECT_EQ(nvml.driver_version(), "535.183.01");
  EXPECT_EQ(nvml.device_names(), (Words{"NVIDIA Fake 24GB", "NVIDIA Shy"}));
  const GpuReading gpu = nvml.read({"00000000:3b:00.0"});
  EXPECT_EQ(gpu.busy_percent, 85);
  EXPECT_EQ(gpu.memory_used_bytes, 12.3e9);
  EXPECT_EQ(gpu.memory_total_bytes, 24e9);
  EXPECT_DOUBLE_EQ(gpu.power_watts.value(), 312.5);
  EXPECT_EQ(gpu.celsius, 83);
  EXPECT_EQ(gpu.fan_percent, 45);
  EXPECT_EQ(gpu.performance_state, 2);
  EXPECT_EQ(gpu.memory_clock_mhz, 9000);
  EXPECT_EQ(gpu.memory_percent, 40);
  EXPECT_EQ(gpu.encoder_percent, 11);
  EXPECT_EQ(gpu.decoder_percent, 12);
  EXPECT_EQ(slowdown_reasons(gpu.clock_reasons.value()), (Words{"power cap", "heat"}));
}

TEST(NvmlTest, WhatABoardDoesNotReportIsAbsent) {
  Nvml nvml(STOKER_FAKE_NVML);
  const GpuReading gpu = nvml.read({"00000000:5e:00.0"});
  EXPECT_EQ(gpu.memory_used_bytes, 12.3e9);
  EXPECT_FALSE(gpu.busy_percent || gpu.power_watts || gpu.celsius || gpu.clock_reasons);
  EXPECT_FALSE(nvml.read({"00000000:99:00.0"}).memory_used_bytes);
}

TEST(NvmlTest, DescribesACard) {
  const Nvml nvml(STOKER_FAKE_NVML);
  EXPECT_EQ(nvml.cuda_version(), "12.2");
  const std::vector<CardFacts> cards = nvml.cards();
  ASSERT_EQ(cards.size(), 2u);
  const core::Json json = hardware_json(card_facts(cards[0], 1));
  const core::Json expected = {{"compute_capability", "8.9"},
                               {"place", "00000000:3b:00.0"},
                               {"numa_node", 1},
                               {"pcie_generation", 3.0},
                               {"highest_pcie_generation", 4.0},
                               {"pcie_width", 4.0},
                               {"highest_pcie_width", 16.0},
                               {"performance_state", 2.0},
                               {"clock_mhz", 1350.0},
                               {"highest_clock_mhz", 1980.0},
                               {"memory_clock_mhz", 9000.0},
                               {"highest_memory_clock_mhz", 9501.0},
                               {"clocks_locked", true},
                               {"busy_percent", 85.0},
                               {"memory_percent", 40.0},
                               {"encoder_percent", 11.0},
                               {"decoder_percent", 12.0},
                               {"fan_percent", 45.0},
                               {"celsius", 83.0},
                               {"power_watts", 312.5},
                               {"persistence", false},
                               {"ecc", true},
                               {"retired_pages", 4.0},
                               {"remapped_rows", 3.0},
                               {"retirement_pending", true},
                               {"mig", false},
                               {"slowed_by", {"power cap", "heat"}}};
  for (const auto& fact : expected.items()) EXPECT_EQ(json.value(fact.key(), core::Json()), fact.value()) << fact.key();
  EXPECT_EQ(json.at("processes").at(0).at("pid"), 1);
  EXPECT_EQ(json.at("processes").at(0).at("memory_bytes"), 11.5e9);
  EXPECT_EQ(json.size(), expected.size() + 1);
  EXPECT_EQ(hardware_json(card_facts(cards[1], std::nullopt)), (core::Json{{"place", "00000000:5e:00.0"}}));
}

TEST(NvmlTest, APartOfACardIsReadAsThatPart) {
  Nvml nvml(STOKER_FAKE_NVML);
  const std::string uuid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
  EXPECT_FALSE(nvml.read({"MIG-" + uuid, "GPU-" + uuid, "00000000:3b:00.0"}).busy_percent) << "the part's figures";
  const GpuReading card = nvml.read({"MIG-other", "GPU-other", "00000000:3b:00.0"});
  EXPECT_EQ(card.busy_percent, 85) << "a card without parts is found by its place";
}

TEST(NvmlTest, WithoutTheLibraryEverythingIsAbsent) {
  Nvml nvml("/nowhere/libnvidia-ml.so.1");
  EXPECT_EQ(nvml.failure(), "/nowhere/libnvidia-ml.so.1 cannot be loaded: no NVIDIA driver");
  EXPECT_EQ(nvml.driver_version(), "");
  EXPECT_TRUE(nvml.device_names().empty());
  EXPECT_FALSE(nvml.read({"00000000:3b:00.0"}).memory_used_bytes);
  EXPECT_EQ(Nvml("libm.so.6").failure(), "libm.so.6 cannot reach the driver");
}

TEST(NvmlTest, IdleClocksAndAdministratorsClocksAreNoSlowdown) {
  EXPECT_TRUE(slowdown_reasons(0x01 | 0x02 | 0x10 | 0x100).empty());
  EXPECT_EQ(slowdown_reasons(0x08), Words{"hardware slowdown"});
  EXPECT_EQ(slowdown_reasons(0x08 | 0x40), Words{"heat"});
  EXPECT_EQ(slowdown_reasons(0x80), Words{"power brake"});
}

}  // namespace
}  // namespace stoker::observe
