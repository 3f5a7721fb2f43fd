// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "core/format.h"
#include "core/log.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "core/time/clock.h"
#include "observe/diagnosis/bottleneck_analysis.h"

namespace stoker::observe {

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::nothing: return "nothing to gain";
    case Verdict::storage: return "input-bound: storage";
    case Verdict::cold_cache: return "input-bound: cold cache";
    case Verdict::decode: return "input-bound: decode";
    case Verdict::augmentation: return "input-bound: augmentation";
    case Verdict::workers: return "input-bound: too few workers";
    case Verdict::prefetch: return "input-bound: undersized prefetch";
    case Verdict::contention: return "CPU contention";
    case Verdict::competing_threads: return "another process competes with the threads";
    case Verdict::oversubscribed_threads: return "oversubscribed threads";
    case Verdict::copy: return "copy-bound";
    case Verdict::sync: return "sync-bound";
    case Verdict::saving: return "checkpoint-bound";
    case Verdict::launch: return "launch-bound: batch too small";
    case Verdict::exchange: return "exchange-bound";
    case Verdict::unequal_ranks: return "unequal ranks";
    case Verdict::throttled: return "throttled";
    case Verdict::device: return "device-bound";
  }
  return "";
}

namespace {

/// Other ranks of this machine are processes, too, each as busy as this one, but they are not competitors: each has
/// CPUs of its own.
std::optional<double> without_other_ranks(const DiagnosisFacts& facts) {
  const std::optional<double>& others = facts.resources.other_cpus;
  if (!others || facts.ranks.empty() || facts.times.wall_seconds <= 0) return others;
  const auto neighbours = std::count_if(facts.ranks.begin(), facts.ranks.end(), [&](const engine::RankTimes& rank) {
    return rank.host == facts.ranks.front().host;  // rank 0 is the one that is examined
  });
  const double own = facts.times.process_cpu_seconds / facts.times.wall_seconds;
  return std::max(0.0, *others - static_cast<double>(neighbours - 1) * own);
}

}  // namespace

double DiagnosisFacts::pass_seconds() const {
  const auto own_replicas = static_cast<double>(replicas) / static_cast<double>(std::max<size_t>(1, ranks.size()));
  const engine::StepParts& parts = times.judged();
  return (parts[engine::StepPart::forward].mean_seconds + parts[engine::StepPart::backward].mean_seconds) /
         (static_cast<double>(accumulation_steps) * own_replicas);
}

Diagnosis diagnose(const DiagnosisFacts& facts) {
  DiagnosisFacts alone = facts;
  alone.resources.other_cpus = without_other_ranks(facts);
  return BottleneckAnalysis(alone).run();
}

std::string diagnosis_text(const Diagnosis& diagnosis) {
  std::string evidence;
  for (const std::string& fact : diagnosis.evidence) evidence += (evidence.empty() ? "" : ", ") + fact;
  std::string text = verdict_text(diagnosis.verdict);
  if (!evidence.empty()) text += " (" + evidence + ")";
  if (diagnosis.verdict == Verdict::nothing) return text;
  return text + core::format(": {}; predicted {:.0f}% more images/s", diagnosis.advice, diagnosis.gain_percent);
}

core::Json diagnosis_json(const Diagnosis& diagnosis) {
  return {{"verdict", verdict_text(diagnosis.verdict)},
          {"evidence", diagnosis.evidence},
          {"knob", diagnosis.option},
          {"value", diagnosis.value},
          {"advice", diagnosis.advice},
          {"gain_percent", diagnosis.gain_percent}};
}

namespace {

using engine::StepPart;

constexpr double kJudgedSeconds = 1;   // of an epoch, for a verdict about it: a hiccup of the machine takes a tenth
constexpr double kShortUpdate = 0.03;  // seconds of computing
constexpr double kThreadsHold = 30;    // seconds: then others may compete or have gone
constexpr double kTriedSeconds = 0.1;  // of a pass with another number of threads, about

using Clock = std::chrono::steady_clock;

}  // namespace

const std::optional<Diagnosis>& Diagnoser::judge(const engine::Interlude& interlude, const ResourceReading& resources,
                                                 const ThroughputProbes& probes) {
  const bool after_epoch = interlude.after == engine::Interlude::After::epoch;
  if (interlude.times.updates < engine::kJudgedUpdates || interlude.times.seconds < kJudgedSeconds) return latest_;
  if (!after_epoch && !std::exchange(warmed_up_, true)) return latest_;  // caches fill, libraries make their plans
  latest_ = examine(interlude, resources, probes);
  const bool is_worth_logging = latest_->gain_percent >= kWorthInterrupting && latest_->verdict != logged_;
  if (!after_epoch && is_worth_logging) core::log_info("diagnosis: {}", diagnosis_text(*latest_));
  if (after_epoch || is_worth_logging) logged_ = latest_->verdict;  // an epoch's line has it
  return latest_;
}

Diagnosis Diagnoser::examine(const engine::Interlude& interlude, const ResourceReading& resources,
                             const ThroughputProbes& probes) {
  DiagnosisFacts facts = known_;
  facts.times = interlude.times;
  facts.ranks = interlude.ranks;
  facts.resources = resources;
  facts.first_epoch = interlude.is_first_epoch;
  facts.epochs_left = interlude.epochs_left;
  if (const auto memory = core::read_memory_use()) {
    facts.free_ram_bytes = static_cast<double>(memory->limit_bytes - memory->used_bytes);
  }
  seconds_allowed_ = interlude.seconds_allowed;
  measure_ceilings(facts, probes);
  return diagnose(facts);
}

/// Nothing when it has to wait, since watching a run must not cost it anything that counts, and when a stop ends it. A
/// figure for a line of the log never ends a run: once a probe has failed, none is called any more.
std::optional<double> Diagnoser::within_budget(const std::function<double()>& probe) {
  if (!probe || seconds_allowed_ <= 0 || a_probe_failed_) return std::nullopt;
  const Clock::time_point begin = Clock::now();
  std::optional<double> measured;
  try {
    measured = probe();
    seconds_allowed_ -= core::seconds_since(begin);
  } catch (const core::StopRequested&) {
    seconds_allowed_ = 0;
  } catch (const std::exception& error) {
    a_probe_failed_ = true;
    core::log_debug("diagnosis: a measurement failed; this run makes no more: {}", error.what());
  }
  return measured;
}

/// Seconds of forward and backward of a batch; for a long one some of its images are enough.
std::optional<double> Diagnoser::batch_seconds(const DiagnosisFacts& facts, const ThroughputProbes& probes,
                                               int64_t threads) {
  const double now = facts.pass_seconds();
  const auto batch = static_cast<double>(facts.batch_size);
  const double images = std::clamp(std::ceil(batch * kTriedSeconds / std::max(1e-9, now)), std::min(batch, 2.0), batch);
  const std::optional<double> seconds =
      within_budget([&] { return probes.pass_seconds(threads, static_cast<int64_t>(images)); });
  return seconds.value_or(0) > 0 ? std::optional(*seconds * batch / images) : std::nullopt;
}

/// Only those that this window gives reason to measure.
void Diagnoser::measure_ceilings(DiagnosisFacts& facts, const ThroughputProbes& probes) {
  const double computing = facts.times.computing_seconds() / std::max(1e-9, facts.times.update.mean_seconds);
  if (computing < 0.25) return;
  const bool suffer = facts.threads > facts.cpus || (facts.threads > 1 && facts.resources.other_cpus.value_or(0) > 0.2);
  // More threads than the CPUs that others leave wait for each other: trying them was seen to hold a run up for 11 s.
  const double in_use = 0.01 * facts.resources.cpu_percent.value_or(100) * static_cast<double>(facts.cpus) +
                        facts.resources.other_cpus.value_or(0);
  const bool idle = facts.threads < facts.cpus && in_use < 0.85 * static_cast<double>(facts.cpus);
  if (facts.on_cpu && facts.replicas == 1 && probes.pass_seconds &&
      (suffer || idle)) {  // replicas have one thread each
    if (core::seconds_since(threads_measured_) > kThreadsHold) {
      one_thread_seconds_.reset();
      cpus_seconds_.reset();
      threads_measured_ = Clock::now();
    }
    const auto seconds_on = [&](int64_t threads) { return batch_seconds(facts, probes, threads); };
    if (suffer && facts.threads > 1 && !one_thread_seconds_) one_thread_seconds_ = seconds_on(1);
    if (facts.cpus != facts.threads && !cpus_seconds_) cpus_seconds_ = seconds_on(facts.cpus);
    facts.one_thread_seconds = one_thread_seconds_;
    facts.cpus_seconds = cpus_seconds_;
  }
  // The fixed part of a long update is small, and trying it takes a while.
  if (!overhead_seconds_ && computing * facts.times.update.mean_seconds < kShortUpdate)
    overhead_seconds_ = within_budget(probes.overhead_seconds);
  if (!bfloat16_speed_ && !facts.amp && !facts.network_bfloat16_speed && computing > 0.6)
    bfloat16_speed_ = within_budget(probes.bfloat16_speed);
  facts.bfloat16_speed = bfloat16_speed_;
  facts.overhead_seconds = overhead_seconds_;
}

}  // namespace stoker::observe
