// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/diagnosis.h"

#include <algorithm>

#include "core/format.h"
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

/// Other ranks of this machine are processes, too, each as busy as this one, but they are no competitors: each has CPUs
/// of its own.
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

}  // namespace stoker::observe
