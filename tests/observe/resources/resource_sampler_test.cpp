// SPDX-License-Identifier: Apache-2.0
#include "observe/resources/resource_sampler.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <fstream>

namespace stoker::observe {
namespace {

constexpr std::chrono::milliseconds kShort{20};

/// Waits until `count` more readings have been made.
void await_readings(ResourceSampler& sampler, int count) {
  std::atomic<int> seen{0};
  sampler.listen([&](const ResourceReading&) { ++seen; });
  for (int i = 0; i < 5000 && seen < count; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sampler.listen({});
  ASSERT_GE(seen, count);
}

/// Seconds until the CPUs that this process may use have been busy with it for 0.15 s of one CPU.
void use_the_cpu() {
  volatile double sum = 0;
  const double end = core::read_process_cpu_seconds() + 0.15;
  while (core::read_process_cpu_seconds() < end) sum = sum + 1;
}

TEST(ProcessMeterTest, ReadsThisProcess) {
  ProcessMeter meter;
  EXPECT_FALSE(meter.read().cpu_percent) << "no share of no time";
  use_the_cpu();
  const ResourceReading reading = meter.read();
  ASSERT_TRUE(reading.cpu_percent && reading.machine_cpu_percent && reading.ram_used_bytes);
  EXPECT_GT(*reading.cpu_percent, 1);
  EXPECT_LE(*reading.cpu_percent, 100);
  EXPECT_GT(*reading.machine_cpu_percent, 0);
  EXPECT_GT(*reading.resident_bytes, 1e6);
  EXPECT_GT(*reading.ram_used_bytes, 1e6);
  EXPECT_LT(*reading.ram_used_bytes, *reading.ram_limit_bytes);
}

TEST(ProcessMeterTest, CountsWhatIsTakenFromItsThreads) {
  ProcessMeter meter;
  std::atomic<bool> stop{false};
  std::vector<std::thread> rivals;  // more than there are CPUs: somebody waits
  for (int i = 0; i < core::read_machine_facts().cpus + 2; ++i) {
    rivals.emplace_back([&stop] {
      while (!stop) {
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const ResourceReading reading = meter.read();
  stop = true;
  for (std::thread& rival : rivals) rival.join();
  ASSERT_TRUE(reading.threads_without_cpu && reading.other_cpus && reading.involuntary_switches_per_second);
  EXPECT_GT(*reading.threads_without_cpu, 0.5);
  EXPECT_GT(*reading.involuntary_switches_per_second, 1);
  EXPECT_GE(*reading.other_cpus, 0);
}

TEST(ProcessMeterTest, CountsBytesThatReachStorage) {
  ProcessMeter meter;
  std::ofstream("written_by_test") << std::string(1 << 20, 'x');
  use_the_cpu();
  const auto written = meter.read().written_bytes_per_second;
  std::remove("written_by_test");
  if (!written) GTEST_SKIP() << "this kernel does not count I/O per process";
  EXPECT_GT(*written, 0);
}

TEST(ResourceSamplerTest, SumsUpBetweenReportsAndBetweenEpochs) {
  ResourceSampler sampler({"00000000:3b:00.0", STOKER_FAKE_NVML, kShort});
  await_readings(sampler, 2);
  EXPECT_FALSE(sampler.last_report().gpu.busy_percent) << "nothing was reported yet";
  sampler.on_report({});
  EXPECT_EQ(sampler.last_report().gpu.busy_percent, 85);
  sampler.on_report({});
  EXPECT_EQ(sampler.last_report().gpu.busy_percent, 85) << "a window without a reading has the latest one";
  sampler.on_epoch({});
  EXPECT_EQ(sampler.last_epoch().gpu.memory_used_bytes, 12.3e9);
}

TEST(ResourceSamplerTest, WithoutAGpuItsFiguresAreAbsent) {
  ResourceSampler sampler({"", STOKER_FAKE_NVML, kShort});
  await_readings(sampler, 2);
  EXPECT_TRUE(sampler.latest().resident_bytes);
  EXPECT_FALSE(sampler.latest().gpu.busy_percent || sampler.latest().gpu.memory_total_bytes);
}

TEST(ResourceSamplerTest, ItsThreadTakesNoSignals) {
  ResourceSampler sampler({"", STOKER_FAKE_NVML, kShort});
  sigset_t there, here;
  ::sigemptyset(&there);
  std::atomic<bool> seen{false};
  sampler.listen([&](const ResourceReading&) {
    if (!seen) ::pthread_sigmask(SIG_BLOCK, nullptr, &there);
    seen = true;
  });
  while (!seen) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sampler.listen({});
  ::pthread_sigmask(SIG_BLOCK, nullptr, &here);
  EXPECT_EQ(::sigismember(&there, SIGTERM), 1);
  EXPECT_EQ(::sigismember(&here, SIGTERM), 0);
}

TEST(ResourceSamplerTest, EndsAtOnceHoweverLongItsPeriod) {
  const auto begin = std::chrono::steady_clock::now();
  { const ResourceSampler sampler({"", STOKER_FAKE_NVML, std::chrono::hours(1)}); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace stoker::observe
