// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/drift.h"

#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

engine::EpochEvent epoch(int64_t number, double images_per_second, double data_wait_share = 0, double other_cpus = 0,
                         double seconds = DriftWatch::kLeastSeconds) {
  engine::EpochEvent event;
  event.train_seconds = seconds;
  event.epoch = number - 1;
  event.images_per_second = images_per_second;
  event.data_wait_share = data_wait_share;
  event.found.resources = engine::ResourceReading();
  event.found.resources->other_cpus = other_cpus;
  return event;
}

/// The verdict after each epoch; empty: none.
std::vector<std::string> verdicts_of(const std::vector<engine::EpochEvent>& epochs) {
  DriftWatch watch;
  std::vector<std::string> verdicts;
  for (const engine::EpochEvent& event : epochs) verdicts.push_back(watch.judge(event));
  return verdicts;
}

TEST(DriftTest, TwoSlowEpochsInARowAreAVerdictThatNamesWhatChanged) {
  const auto verdicts =
      verdicts_of({epoch(1, 400), epoch(2, 1020, 0.02), epoch(3, 1000), epoch(4, 640, 0.34), epoch(5, 630, 0.35)});
  EXPECT_EQ(verdicts[3], "") << "one slow epoch may be chance";
  EXPECT_EQ(
      verdicts[4],
      "640 images/s in the last two epochs, 37% below the 1,020 of epoch 2: it waits for data 35% of the time, then "
      "2%: storage or page cache got slower");
}

TEST(DriftTest, OtherProcessesAreNamed) {
  const auto verdicts =
      verdicts_of({epoch(1, 1), epoch(2, 1000), epoch(3, 1000), epoch(4, 500, 0, 1.2), epoch(5, 500, 0, 1.2)});
  EXPECT_NE(verdicts[4].find("other processes keep 1.2 of its CPUs busy, then 0.0"), std::string::npos) << verdicts[4];
}

TEST(DriftTest, WithoutAnyOtherChangeTheNetworkItselfIsSlower) {
  const auto verdicts = verdicts_of({epoch(1, 1), epoch(2, 1000), epoch(3, 990), epoch(4, 700), epoch(5, 700)});
  EXPECT_NE(verdicts[4].find("the network itself computes slower"), std::string::npos) << verdicts[4];
}

TEST(DriftTest, WhereCpusWereBusyAlreadyWaitingThreadsTellOfNewProcesses) {
  std::vector<engine::EpochEvent> epochs = {epoch(1, 1), epoch(2, 1000, 0, 1.6), epoch(3, 1000, 0, 1.6),
                                            epoch(4, 500, 0, 1.8), epoch(5, 500, 0, 1.8)};
  for (engine::EpochEvent& event : epochs) event.found.resources->threads_without_cpu = event.epoch < 3 ? 0.5 : 4;
  EXPECT_NE(verdicts_of(epochs)[4].find("4.0 of its threads wait for a CPU, then 0.5: other processes"),
            std::string::npos)
      << verdicts_of(epochs)[4];
}

TEST(DriftTest, OnCpusThatWereFullAlreadyOtherProcessesAreNamedBeforeTheNetwork) {
  const std::string verdict = verdicts_of(
      {epoch(1, 1), epoch(2, 1000, 0, 1.7), epoch(3, 1000, 0, 1.7), epoch(4, 500, 0, 1.9), epoch(5, 500, 0, 1.9)})[4];
  EXPECT_NE(verdict.find(": other processes keep 1.9 of its CPUs busy, then 1.7: where CPUs are full already, more "),
            std::string::npos)
      << verdict;
  EXPECT_EQ(verdict.find("the network"), std::string::npos) << verdict;
}

TEST(DriftTest, WaitingForDataIsNotTheStorageWhereOtherProcessesTakeTheCpus) {
  std::vector<engine::EpochEvent> epochs = {epoch(1, 1), epoch(2, 1000, 0, 2), epoch(3, 1000, 0, 2),
                                            epoch(4, 500, 0.12, 2), epoch(5, 500, 0.12, 2)};
  EXPECT_NE(verdicts_of(epochs)[4].find("or workers get less of the CPUs, of which other processes keep 2.0 busy"),
            std::string::npos)
      << verdicts_of(epochs)[4];
  for (engine::EpochEvent& event : epochs) event.found.resources->threads_without_cpu = event.epoch < 3 ? 0.5 : 1.5;
  EXPECT_EQ(verdicts_of(epochs)[4].find("storage"), std::string::npos) << verdicts_of(epochs)[4];
}

TEST(DriftTest, ACauseThatIsSeenComesBeforeCpusThatWereFullAlready) {
  std::vector<engine::EpochEvent> epochs = {epoch(1, 1), epoch(2, 1000, 0, 1.7), epoch(3, 1000, 0, 1.7),
                                            epoch(4, 500, 0, 1.9), epoch(5, 500, 0, 1.9)};
  for (engine::EpochEvent& event : epochs) {
    event.found.resources->gpu.highest_clock_mhz = 2000;
    event.found.resources->gpu.clock_mhz = event.epoch < 3 ? 1990 : 900;
  }
  EXPECT_NE(verdicts_of(epochs)[4].find("the GPU's clocks are lower"), std::string::npos) << verdicts_of(epochs)[4];
}

TEST(DriftTest, WhatIsNotKnownOfOtherProcessesIsNotClaimed) {
  std::vector<engine::EpochEvent> epochs = {epoch(1, 1), epoch(2, 1000), epoch(3, 990), epoch(4, 700), epoch(5, 700)};
  for (engine::EpochEvent& event : epochs) event.found.resources->other_cpus.reset();
  EXPECT_NE(verdicts_of(epochs)[4].find("what other processes do is not known here"), std::string::npos);
}

TEST(DriftTest, TheFirstEpochIsNoMeasure) {
  for (const std::string& verdict : verdicts_of({epoch(1, 5000), epoch(2, 1000), epoch(3, 1000), epoch(4, 1010)})) {
    EXPECT_EQ(verdict, "");
  }
}

TEST(DriftTest, ItIsReportedOnceAndAgainWhenAsMuchIsLostOnceMore) {
  const auto verdicts = verdicts_of({epoch(1, 1), epoch(2, 1000), epoch(3, 1000), epoch(4, 700), epoch(5, 700),
                                     epoch(6, 690), epoch(7, 500), epoch(8, 500)});
  EXPECT_NE(verdicts[4], "");
  EXPECT_EQ(verdicts[5], "");
  EXPECT_EQ(verdicts[6], "");
  EXPECT_NE(verdicts[7], "");
}

TEST(DriftTest, OfShortEpochsManyTogetherAreCompared) {
  std::vector<engine::EpochEvent> epochs = {epoch(1, 1)};
  const auto add = [&](int count, double rate) {
    for (int i = 0; i < count; ++i) {
      const double noise = i % 2 == 0 ? 1.4 : 0.6;  // of epochs of a second
      epochs.push_back(epoch(static_cast<int64_t>(epochs.size()) + 1, noise * rate, 0, 0, /*seconds=*/1));
    }
  };
  add(40, 1000);
  for (const std::string& verdict : verdicts_of(epochs)) EXPECT_EQ(verdict, "");
  add(20, 700);
  const std::string verdict = verdicts_of(epochs).back();
  EXPECT_EQ(verdict.rfind("700 images/s in the last 20 epochs, 30% below the ", 0), 0u) << verdict;
  EXPECT_NE(verdict.find(" of epochs "), std::string::npos) << verdict;
}

}  // namespace
}  // namespace stoker::observe
