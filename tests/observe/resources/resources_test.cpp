// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/resources.h"

#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

ResourceReading full_reading() {
  ResourceReading reading;
  reading.gpu.busy_percent = 85;
  reading.gpu.memory_used_bytes = 12.3e9;
  reading.gpu.memory_total_bytes = 24e9;
  reading.gpu.clock_reasons = 0;
  reading.cpu_percent = 45.2;
  reading.ram_used_bytes = 18.4e9;
  reading.ram_limit_bytes = 64e9;
  return reading;
}

TEST(ResourcesTest, EveryFigureHasItsPlaceAndUnit) {
  EXPECT_EQ(resource_text(full_reading()), "GPU: 85% | VRAM:12.3/24.0GB(51.2%) | CPU: 45.2% | RAM:18.4/64.0GB(28.8%)");
}

TEST(ResourcesTest, WhatIsNotKnownIsNotZero) {
  EXPECT_EQ(resource_text({}), "");
  const core::Json figures = resource_json({});
  EXPECT_GT(figures.size(), 10u);
  for (const auto& item : figures.items()) EXPECT_TRUE(item.value().is_null()) << item.key();
}

TEST(ResourcesTest, ASlowedDeviceIsReported) {
  ResourceReading reading = full_reading();
  reading.gpu.clock_reasons = 0x40;
  EXPECT_EQ(resource_texts(reading).slowed, "GPU slowed by heat");
  EXPECT_EQ(resource_json(reading).at("gpu_slowed_by").dump(), "[\"heat\"]");
  EXPECT_EQ(resource_json(full_reading()).at("gpu_slowed_by").dump(), "[]");
}

TEST(ResourcesTest, AWindowHasMeansOfSharesAndTheHighestOfMemory) {
  ResourceReading a = full_reading(), b = full_reading();
  a.gpu.busy_percent = 40;
  b.gpu.busy_percent = 60;
  a.ram_used_bytes = 20e9;
  b.ram_used_bytes = 10e9;
  a.gpu.clock_reasons = 0x04;
  b.cpu_percent.reset();
  ResourceWindow window;
  EXPECT_TRUE(window.is_empty());
  for (const ResourceReading& reading : {a, b}) window.add(reading);
  const ResourceReading summary = window.summary();
  EXPECT_EQ(summary.gpu.busy_percent, 50);
  EXPECT_EQ(summary.ram_used_bytes, 20e9);
  EXPECT_EQ(summary.gpu.clock_reasons, 0x04u);
  EXPECT_EQ(summary.cpu_percent, 45.2) << "a reading that is absent does not count as 0";
  EXPECT_FALSE(summary.gpu.celsius);
}

}  // namespace
}  // namespace stoker::observe
