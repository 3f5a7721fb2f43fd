// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/diagnosis.h"

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
    case Verdict::throttled: return "throttled";
    case Verdict::device: return "device-bound";
  }
  return "";
}

Diagnosis diagnose(const DiagnosisFacts& facts) { return BottleneckAnalysis(facts).run(); }

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
          {"knob", diagnosis.knob},
          {"value", diagnosis.value},
          {"advice", diagnosis.advice},
          {"gain_percent", diagnosis.gain_percent}};
}

}  // namespace stoker::observe
