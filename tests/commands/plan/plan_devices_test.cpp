// SPDX-License-Identifier: Apache-2.0
#include "commands/plan/plan_devices.h"

#include <gtest/gtest.h>

#include "tests/config/command_words.h"

namespace stoker::train {
namespace {

constexpr int64_t kMB = 1'000'000;

PlanFlags asked(const std::string& devices) {
  PlanFlags flags;
  flags.devices = devices;
  return flags;
}

/// ImageNet on a machine with 16 CPUs and 62 GB; one process takes 2 GB, 0.5 GB of it for this one by now.
std::vector<plan::DevicePlan> plans_of(const std::string& devices, std::vector<std::string> words) {
  words.insert(words.end(),
               {"--num-workers", "12", "--prefetch-factor", "3", "--device", "cpu", "--model", "resnet50"});
  const auto configuration = fixtures::parsed(words, "plan");
  const DeviceQuestion question = device_question(asked(devices), *configuration);
  core::MachineFacts machine;
  machine.cpus = 16;
  machine.ram_available_bytes = 62'000 * kMB;
  Settings settings(*configuration, machine);
  config::DataFacts data = config::usual_data(configuration->options);
  data.train_images = 1'281'167;
  settings.learn(&config::Facts::data, data);
  settings.set_model_facts();
  plan::PlanInputs measured;
  measured.program_bytes = 2'000 * kMB;
  measured.train_images = data.train_images;
  measured.gradient_bytes = 100 * kMB;
  plan::MemoryBudget budget;
  budget.host_held_bytes = 500 * kMB;
  budget.host_free_bytes = 61'500 * kMB;
  return plan_devices(question, *configuration, settings, measured, budget);
}

TEST(PlanDevicesTest, EveryDeviceAddsABatchWorkersMemoryAndLearningRate) {
  // The usual settings of ResNet-50: 256 images per device with 12 workers, learning rate 0.5 for each 256.
  const auto plans = plans_of("1,2,4,8", {"--batch-size", "256", "--lr-base", "0.5"});
  ASSERT_EQ(plans.size(), 4u);
  const int64_t images[] = {256, 512, 1024, 2048}, workers[] = {12, 24, 48, 96}, updates[] = {5005, 2503, 1252, 626};
  const double rates[] = {0.5, 1, 2, 4};
  for (size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(plans[i].devices);
    EXPECT_EQ(plans[i].images_per_update(), images[i]);
    EXPECT_EQ(plans[i].batch_size, 256);
    EXPECT_EQ(plans[i].num_workers * plans[i].devices, workers[i]);
    EXPECT_EQ(plans[i].updates_per_epoch, updates[i]);
    EXPECT_DOUBLE_EQ(plans[i].learning_rate, rates[i]);
    EXPECT_NEAR(static_cast<double>(plans[i].memory.host_bytes), static_cast<double>(plans[0].memory.host_bytes),
                0.2e9);
    EXPECT_EQ(plans[i].budget.host_held_bytes + plans[i].budget.host_free_bytes, 62'000 * kMB / plans[i].devices);
  }
  EXPECT_EQ(plans[0].exchange_bytes, 0);
  EXPECT_EQ(plans[1].exchange_bytes, 100 * kMB);
}

TEST(PlanDevicesTest, ReplicasThatWereGivenAreSharded) {
  const auto plans = plans_of("1,4", {"--replicas", "4", "--batch-size", "64"});
  for (const plan::DevicePlan& plan : plans) {
    EXPECT_EQ(plan.images_per_update(), 256);
    EXPECT_DOUBLE_EQ(plan.learning_rate, 0.1);
  }
  EXPECT_EQ(fixtures::failure_of([] { plans_of("3", {"--replicas", "4"}); }).kind, core::ErrorKind::config);
}

TEST(PlanDevicesTest, AnUpdateOfAGivenSizeIsSharedByAccumulatingLess) {
  const auto plans = plans_of("1,2,4", {"--total-batch-size", "1024", "--batch-size", "128"});
  const int64_t steps[] = {8, 4, 2};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plans[i].images_per_update(), 1024);
    EXPECT_EQ(plans[i].accumulation_steps, steps[i]);
  }
}

TEST(PlanDevicesTest, AnAutomaticBatchFitsTheShareOfEachProcess) {
  const auto plans = plans_of("1,16", {"--batch-size", "auto"});
  EXPECT_EQ(plans[0].batch_size, 64) << "more is of no use on a CPU";
  EXPECT_TRUE(plans[1].short_of.empty()) << plans[1].short_of;
}

TEST(PlanDevicesTest, DevicesThatAreNoNumbersAreRefused) {
  const auto configuration = fixtures::parsed({});
  for (const char* const devices : {"1,,2", "0", "two"}) {
    const auto failure = fixtures::failure_of([&] { device_question(asked(devices), *configuration); });
    EXPECT_EQ(failure.kind, core::ErrorKind::usage) << devices;
  }
}

}  // namespace
}  // namespace stoker::train
