// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/diagnoser.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"

namespace stoker::observe {
namespace {

using engine::StepPart;

constexpr double kWorthInterrupting = 10;  // percent
constexpr int64_t kLeastUpdates = 5;       // in an epoch, for a verdict about it
constexpr double kProbeShare = 0.005;      // of the run's time, that ceilings may cost before another is measured
constexpr double kShortUpdate = 0.03;      // seconds of computing
constexpr double kThreadsHold = 30;        // seconds: then others may compete or have gone

using Clock = std::chrono::steady_clock;

}  // namespace

Diagnoser::Diagnoser(DiagnosisFacts known, ThroughputProbes probes, const ResourceSampler* resources)
    : known_(std::move(known)), probes_(std::move(probes)), resources_(resources), begin_(Clock::now()) {}

void Diagnoser::on_start(const engine::StartEvent& event) {
  start_ = event;
  begin_ = Clock::now();
}

/// As long as it will take at its speed so far: what is worth measuring is worth it early, while memory still grows.
double Diagnoser::expected_seconds(int64_t updates) const {
  const auto done = static_cast<double>(updates - start_.start_updates);
  const auto asked = static_cast<double>(start_.total_updates - start_.start_updates);
  return core::seconds_since(begin_) * std::max(1.0, asked / std::max(1.0, done));
}

void Diagnoser::on_report(const engine::ReportEvent& event) {
  if (event.recent_times.updates == 0) return;
  if (!std::exchange(warmed_up_, true)) return;  // caches fill, libraries make their plans
  latest_ = examine(event.recent_times, resources_ ? resources_->last_report() : ResourceReading(), event.at.epoch,
                    event.at.updates);
  has_any_ = true;
  if (latest_.gain_percent < kWorthInterrupting || latest_.verdict == said_) return;
  said_ = latest_.verdict;
  core::log_info("diagnosis: {}", diagnosis_text(latest_));
}

void Diagnoser::on_epoch(const engine::EpochEvent& event) {
  if (event.times.updates < kLeastUpdates) return;
  latest_ = examine(event.times, resources_ ? resources_->last_epoch() : ResourceReading(), event.epoch, event.updates);
  has_any_ = true;
  said_ = latest_.verdict;
}

Diagnosis Diagnoser::examine(const engine::StepTimings& times, const ResourceReading& resources, int64_t epoch,
                             int64_t updates) {
  DiagnosisFacts facts = known_;
  facts.times = times;
  facts.resources = resources;
  facts.first_epoch = epoch == start_.start_epoch;
  facts.epochs_left = start_.epochs - 1 - epoch;
  if (const auto memory = core::read_memory_use()) {
    facts.free_ram_bytes = static_cast<double>(memory->limit_bytes - memory->used_bytes);
  }
  probe_budget_seconds_ = kProbeShare * expected_seconds(updates);
  measure_ceilings(facts);
  return diagnose(facts);
}

/// Nothing when it has to wait, since watching a run must not cost it anything that counts.
std::optional<double> Diagnoser::within_budget(const std::function<double()>& probe) {
  if (!probe || core::stop_requested() || probe_seconds_ > probe_budget_seconds_) return std::nullopt;
  const Clock::time_point begin = Clock::now();
  std::optional<double> measured;
  try {
    measured = probe();
  } catch (const core::StopRequested&) {  // the loop sees the request itself, once all listeners have heard the event
  }
  probe_seconds_ += core::seconds_since(begin);
  return measured;
}

/// Only those that this window gives reason to ask for.
void Diagnoser::measure_ceilings(DiagnosisFacts& facts) {
  const double computing = facts.times.share(StepPart::forward) + facts.times.share(StepPart::backward) +
                           facts.times.share(StepPart::optimizer);
  if (computing < 0.25) return;
  const bool suffer = facts.threads > facts.cpus || (facts.threads > 1 && facts.resources.other_cpus.value_or(0) > 0.2);
  const bool idle = facts.threads < facts.cpus && facts.resources.cpu_percent.value_or(100) < 85;
  if (facts.on_cpu && probes_.threads_speed && (suffer || idle)) {
    if (core::seconds_since(threads_measured_) > kThreadsHold) {
      threads_speed_.reset();
      cpus_speed_.reset();
      threads_measured_ = Clock::now();
    }
    const auto speed_of = [this](int64_t threads) {
      return within_budget([&] { return probes_.threads_speed(threads); });
    };
    if (facts.threads > 1 && !threads_speed_) threads_speed_ = speed_of(facts.threads);
    if (facts.cpus != facts.threads && !cpus_speed_) cpus_speed_ = speed_of(facts.cpus);
    facts.threads_speed = threads_speed_;
    facts.cpus_speed = cpus_speed_;
  }
  // Of a long update the fixed part is small, and trying it takes a while.
  if (!fixed_seconds_ && computing * facts.times.update.mean_seconds < kShortUpdate)
    fixed_seconds_ = within_budget(probes_.overhead_seconds);
  if (!bfloat16_speed_ && !facts.amp && computing > 0.6) bfloat16_speed_ = within_budget(probes_.bfloat16_speed);
  facts.bfloat16_speed = bfloat16_speed_;
  facts.overhead_seconds = fixed_seconds_;
}

}  // namespace stoker::observe
