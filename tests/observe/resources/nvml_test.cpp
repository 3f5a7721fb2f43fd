// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/resources.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(slowdown_reasons(gpu.clock_reasons.value()), (Words{"power cap", "heat"}));
}

TEST(NvmlTest, WhatABoardDoesNotReportIsAbsent) {
  Nvml nvml(STOKER_FAKE_NVML);
  const GpuReading gpu = nvml.read({"00000000:5e:00.0"});
  EXPECT_EQ(gpu.memory_used_bytes, 12.3e9);
  EXPECT_FALSE(gpu.busy_percent || gpu.power_watts || gpu.celsius || gpu.clock_reasons);
  EXPECT_FALSE(nvml.read({"00000000:99:00.0"}).memory_used_bytes);
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
