// SPDX-License-Identifier: Apache-2.0
// Verdicts about runs on a device, whose own clock and the host's tell different things.
#include <gtest/gtest.h>

#include "observe/diagnosis/diagnosis.h"

namespace stoker::observe {
namespace {

using engine::StepPart;

constexpr double kMillisecond = 1e-3;

/// 100 updates of 20 ms, of which the device computes `computes_ms`; the host launches ahead and waits in the meantime.
engine::StepTimings on_device(double computes_ms) {
  engine::StepTimings times;
  times.updates = 100;
  times.seconds = times.wall_seconds = 2;
  times.update.mean_seconds = 20 * kMillisecond;
  times.has_device = true;
  times.parts[StepPart::forward].mean_seconds = 3 * kMillisecond;
  times.parts[StepPart::wait].mean_seconds = 17 * kMillisecond;
  times.device[StepPart::forward].mean_seconds = computes_ms * kMillisecond;
  times.device[StepPart::wait].mean_seconds = (20 - computes_ms) * kMillisecond;
  times.lag_seconds = 15 * kMillisecond;
  times.loader.num_workers = 1;
  times.loader.decode_seconds = times.loader.worker_cpu_seconds = 100 * 17 * kMillisecond;
  return times;
}

TEST(DiagnosisTest, ADeviceIsJudgedByItsOwnClock) {
  DiagnosisFacts facts;
  facts.on_cpu = false;
  facts.cpus = 4;
  facts.times = on_device(/*computes_ms=*/20);
  EXPECT_EQ(diagnose(facts).verdict, Verdict::nothing) << "the host waits, but the device has work all the time";
  facts.times = on_device(/*computes_ms=*/5);
  facts.times.loader.decode_seconds = facts.times.loader.worker_cpu_seconds = 100 * 20 * kMillisecond;
  EXPECT_EQ(diagnose(facts).verdict, Verdict::workers) << diagnosis_text(diagnose(facts));
}

TEST(DiagnosisTest, ADeviceThatHasAlwaysCaughtUpWithTheHostIsHeldUpByLaunching) {
  DiagnosisFacts facts;
  facts.on_cpu = false;
  facts.cpus = 4;
  facts.batch_size = 64;
  facts.images_per_epoch = 50'000;
  facts.times = on_device(/*computes_ms=*/6);
  facts.times.parts[StepPart::wait].mean_seconds = 0.1 * kMillisecond;
  facts.times.parts[StepPart::forward].mean_seconds = 19.9 * kMillisecond;
  facts.times.loader = {};
  facts.times.loader.num_workers = 1;
  facts.times.lag_seconds = 0.02 * kMillisecond;
  facts.resources.gpu.busy_percent = 30;
  const Diagnosis found = diagnose(facts);
  EXPECT_EQ(found.verdict, Verdict::launch) << diagnosis_text(found);
  EXPECT_EQ(found.value, "256") << "twice would leave the device idle, four times keeps it busy";
  facts.times.lag_seconds = 15 * kMillisecond;
  EXPECT_NE(diagnose(facts).verdict, Verdict::launch) << "the host is ahead";
}

TEST(DiagnosisTest, AmpIsAdvisedForAGpuWithoutItWithoutAProbe) {
  DiagnosisFacts facts;
  facts.on_cpu = false;
  facts.times = on_device(/*computes_ms=*/20);
  facts.native_bfloat16 = true;
  EXPECT_EQ(diagnose(facts).option, "--amp");
  facts.native_bfloat16 = false;
  EXPECT_EQ(diagnose(facts).verdict, Verdict::nothing);
  facts.native_bfloat16 = facts.amp = true;
  EXPECT_EQ(diagnose(facts).verdict, Verdict::nothing);
}

}  // namespace
}  // namespace stoker::observe
