// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/resource_sampler.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>

#include "core/time/clock.h"

namespace stoker::observe {
namespace {

constexpr std::chrono::milliseconds kShort{20};

/// Waits until `count` more readings have been made.
void await_readings(ResourceSampler& sampler, int count) {
  std::atomic<int> seen{0};
  sampler.set_callback([&](const ResourceReading&) { ++seen; });
  for (int i = 0; i < 30'000 && seen < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sampler.set_callback({});
  ASSERT_GE(seen, count);
}

/// Two seconds of a process that may use four CPUs, on a machine of eight.
struct TwoSeconds {
  ProcessCounters before, now;
  TwoSeconds() {
    before = {100,
              10,
              core::MachineCpuSeconds{1000, 4000},
              core::MachineCpuSeconds{500, 2000},
              core::StorageTraffic{1 << 20, 5 << 20},
              core::RunDelay{3, 4},
              200};
    now = {102,
           15,
           core::MachineCpuSeconds{1012, 4016},
           core::MachineCpuSeconds{507, 2008},
           core::StorageTraffic{3 << 20, 5 << 20},
           core::RunDelay{4.5, 4},
           260};
  }
  ResourceReading reading() const {
    ResourceReading reading;
    set_rates(reading, before, now, /*cpus=*/4);
    return reading;
  }
};

TEST(ProcessRatesTest, CpuIsAShareOfTheCpusThatMayBeUsed) {
  const ResourceReading reading = TwoSeconds().reading();
  EXPECT_DOUBLE_EQ(reading.cpu_percent.value(), 100 * 5.0 / 8);
  EXPECT_DOUBLE_EQ(reading.machine_cpu_percent.value(), 100 * 12.0 / 16);
  TwoSeconds more;
  more.now.cpu_seconds = 30;
  EXPECT_EQ(more.reading().cpu_percent, 100) << "never more than all";
}

TEST(ProcessRatesTest, WhatIsTakenFromItsThreadsIsCounted) {
  const ResourceReading reading = TwoSeconds().reading();
  EXPECT_DOUBLE_EQ(reading.threads_without_cpu.value(), 0.75);
  EXPECT_DOUBLE_EQ(reading.involuntary_switches_per_second.value(), 30);
  EXPECT_DOUBLE_EQ(reading.other_cpus.value(), 1) << "7 s of CPU, 5 of them its own, in 2 s";
  TwoSeconds ended;
  ended.now.delay->seconds = 2;
  EXPECT_EQ(ended.reading().threads_without_cpu, 0) << "a thread has ended, and its delay with it";
}

TEST(ProcessRatesTest, BytesOfStorageAreCountedPerSecond) {
  const ResourceReading reading = TwoSeconds().reading();
  EXPECT_DOUBLE_EQ(reading.read_bytes_per_second.value(), 1 << 20);
  EXPECT_EQ(reading.written_bytes_per_second, 0);
}

TEST(ProcessRatesTest, NothingIsReportedForAMomentThatIsTooShort) {
  TwoSeconds close;
  close.now.seconds = close.before.seconds + 0.09;
  const ResourceReading reading = close.reading();
  EXPECT_FALSE(reading.cpu_percent || reading.machine_cpu_percent || reading.other_cpus ||
               reading.threads_without_cpu || reading.involuntary_switches_per_second ||
               reading.read_bytes_per_second || reading.written_bytes_per_second);
}

TEST(ProcessRatesTest, WhatTheKernelDoesNotReportIsAbsent) {
  TwoSeconds silent;
  silent.now.machine.reset();
  silent.now.allowed.reset();
  silent.now.traffic.reset();
  silent.before.delay.reset();
  const ResourceReading reading = silent.reading();
  EXPECT_FALSE(reading.machine_cpu_percent || reading.other_cpus || reading.threads_without_cpu ||
               reading.read_bytes_per_second || reading.written_bytes_per_second);
  EXPECT_TRUE(reading.cpu_percent);
}

TEST(ProcessMeterTest, ReadsThisProcess) {
  ProcessMeter meter;
  core::machine_clock().sleep(0.11);
  const ResourceReading reading = meter.read();
  ASSERT_TRUE(reading.cpu_percent && reading.machine_cpu_percent && reading.ram_used_bytes && reading.resident_bytes);
  EXPECT_GT(*reading.resident_bytes, 1e6);
  EXPECT_GT(*reading.ram_used_bytes, 1e6);
  EXPECT_LT(*reading.ram_used_bytes, *reading.ram_limit_bytes);
}

TEST(ProcessMeterTest, CountersOfTheKernelOnlyGrow) {
  const ProcessCounters before = read_process_counters(), now = read_process_counters();
  EXPECT_GE(now.seconds, before.seconds);
  EXPECT_GE(now.cpu_seconds, before.cpu_seconds);
  ASSERT_TRUE(before.machine && now.machine && before.allowed && now.allowed);
  EXPECT_GE(now.machine->total, before.machine->total);
  EXPECT_GE(now.involuntary_switches, before.involuntary_switches);
}

TEST(ResourceSamplerTest, SumsUpBetweenReportsAndBetweenEpochs) {
  ResourceSampler sampler({{"MIG-00000000-0000-0000-0000-000000000000", "00000000:3b:00.0"}, STOKER_FAKE_NVML, kShort});
  await_readings(sampler, 2);
  EXPECT_EQ(sampler.since_report().gpu.busy_percent, 85);
  EXPECT_EQ(sampler.since_report().gpu.busy_percent, 85) << "a window without a reading has the latest one";
  EXPECT_EQ(sampler.since_epoch().gpu.memory_used_bytes, 12.3e9);
}

TEST(ResourceSamplerTest, WithoutAGpuItsFiguresAreAbsent) {
  ResourceSampler sampler({{}, STOKER_FAKE_NVML, kShort});
  await_readings(sampler, 2);
  EXPECT_TRUE(sampler.latest().resident_bytes);
  EXPECT_FALSE(sampler.latest().gpu.busy_percent || sampler.latest().gpu.memory_total_bytes);
}

TEST(ResourceSamplerTest, ItsThreadTakesNoSignals) {
  ResourceSampler sampler({{}, STOKER_FAKE_NVML, kShort});
  sigset_t there, here;
  ::sigemptyset(&there);
  std::atomic<bool> seen{false};
  sampler.set_callback([&](const ResourceReading&) {
    if (!seen) ::pthread_sigmask(SIG_BLOCK, nullptr, &there);
    seen = true;
  });
  while (!seen) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sampler.set_callback({});
  ::pthread_sigmask(SIG_BLOCK, nullptr, &here);
  EXPECT_EQ(::sigismember(&there, SIGTERM), 1);
  EXPECT_EQ(::sigismember(&here, SIGTERM), 0);
}

TEST(ResourceSamplerTest, EndsAtOnceHoweverLongItsPeriod) {
  const auto begin = std::chrono::steady_clock::now();
  { const ResourceSampler sampler({{}, STOKER_FAKE_NVML, std::chrono::hours(1)}); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace stoker::observe
