// SPDX-License-Identifier: Apache-2.0
#include "plan/device_plan.h"

#include <gtest/gtest.h>

namespace stoker::plan {
namespace {

/// 4 replicas that accumulate 2 batches of 16, dealt to `devices`.
DevicePlan plan_on(int64_t devices) {
  DevicePlan plan;
  plan.devices = devices;
  plan.replicas = 4;
  plan.accumulation_steps = 2;
  plan.batch_size = 16;
  plan.updates_per_epoch = 100;
  plan.num_workers = 3;
  plan.learning_rate = 0.05;
  plan.memory.host_bytes = 200'000'000;
  plan.exchange_bytes = devices > 1 ? 40'000'000 : 0;
  return plan;
}

/// Computes 8 batches in 0.8 s alone; with two processes 4 in 0.5 s, and exchanges for 0.04 s.
const TriedUpdate kAlone = {1, 8, 0.8, 0, 6};
const TriedUpdate kPair = {2, 4, 0.5, 0.04, 4};

TEST(DevicePlanTest, WhatWasTriedIsWhatIsPredicted) {
  const UpdateTime time = predict_update(plan_on(2), {kAlone, kPair}, /*cpus=*/4);
  EXPECT_TRUE(time.is_tried);
  EXPECT_DOUBLE_EQ(time.compute, 0.5);
  EXPECT_DOUBLE_EQ(time.exchange.value(), 0.04);
  EXPECT_DOUBLE_EQ(time.validation, 4);
}

TEST(DevicePlanTest, MoreDevicesShareTheBatches) {
  const UpdateTime time = predict_update(plan_on(4), {kAlone, kPair}, /*cpus=*/4);
  EXPECT_FALSE(time.is_tried);
  EXPECT_DOUBLE_EQ(time.compute, 0.25) << "2 batches each, as long as with two processes";
  // Two processes sent half of the sum, twice; four send three quarters.
  EXPECT_DOUBLE_EQ(time.exchange.value(), 0.06);
}

TEST(DevicePlanTest, ProcessesThatShareCpusComputeSlower) {
  const UpdateTime time = predict_update(plan_on(4), {kAlone, kPair}, /*cpus=*/2);
  EXPECT_DOUBLE_EQ(time.compute, 0.5);
  const UpdateTime own_devices = predict_update(plan_on(4), {kAlone, kPair}, /*cpus=*/0);
  EXPECT_DOUBLE_EQ(own_devices.compute, 0.25);
}

TEST(DevicePlanTest, AnExchangeThatWasNeverMeasuredIsNotPredicted) {
  const UpdateTime two = predict_update(plan_on(2), {kAlone}, /*cpus=*/4);
  EXPECT_FALSE(two.exchange.has_value());
  EXPECT_DOUBLE_EQ(two.update(), 0.4);
  const UpdateTime one = predict_update(plan_on(1), {kPair}, /*cpus=*/4);
  EXPECT_DOUBLE_EQ(one.exchange.value(), 0) << "alone there is no rank to exchange with";
  std::vector<DevicePlan> plans = {plan_on(2)};
  plans[0].time = two;
  const std::string line = device_table(plans).back();
  EXPECT_NE(line.find("400.0 ms         -  400.0 ms"), std::string::npos) << line;
  EXPECT_NE(line.find("predicted without the exchange"), std::string::npos) << line;
  EXPECT_TRUE(device_plans_json(plans).at(0).at("time").at("exchange_seconds").is_null());
}

TEST(DevicePlanTest, TheTableHasSettingsTotalsAndTimes) {
  std::vector<DevicePlan> plans = {plan_on(1), plan_on(2)};
  for (DevicePlan& plan : plans) plan.time = predict_update(plan, {kAlone, kPair}, 4);
  plans[1].short_of = "memory";
  const std::vector<std::string> lines = device_table(plans);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(
      lines[2],
      "      2                       4 x 2 x 16            128          64            100  0.05             3     "
      "  6  200.0 MB    400.0 MB    no");
  EXPECT_EQ(lines[6], "      2  500.0 ms   40.0 ms  540.0 ms       1.85       237   1.48  54.0s  40.0 MB       tried");
}

TEST(DevicePlanTest, JsonHasTheSameInPlainUnits) {
  std::vector<DevicePlan> plans = {plan_on(2)};
  const core::Json json = device_plans_json(plans).at(0);
  EXPECT_EQ(json.at("devices"), 2);
  EXPECT_EQ(json.at("images_per_update"), 128);
  EXPECT_EQ(json.at("images_per_device"), 64);
  EXPECT_EQ(json.at("total_workers"), 6);
  EXPECT_EQ(json.at("machine_host_bytes"), 400'000'000);
  EXPECT_TRUE(json.at("time").is_null());
}

}  // namespace
}  // namespace stoker::plan
