// SPDX-License-Identifier: Apache-2.0
// Evaluations of networks that do not exist: their outputs are drawn from known distributions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "statistics/weighted_metrics.h"

namespace stoker::statistics {

/// A network of `classes` classes (multiclass), one logit (binary), two labels (multilabel) or two numbers
/// (regression), on samples of its own for each `evaluation`.
inline EvaluatedSamples simulated(config::TaskKind task, int64_t samples, uint64_t evaluation, double skill = 2) {
  using config::TaskKind;
  constexpr int kClasses = 6;
  core::Rng rng(17, core::RngPurpose::probe, static_cast<uint64_t>(task), evaluation);
  EvaluatedSamples drawn;
  drawn.task = task;
  drawn.columns = task == TaskKind::multiclass ? kClasses : task == TaskKind::binary ? 1 : 2;
  for (int64_t i = 0; i < samples; ++i) {
    drawn.samples.push_back(i);
    if (task == TaskKind::multiclass) {
      std::vector<double> logits;
      const auto truth = static_cast<size_t>(rng.below(kClasses));
      for (size_t k = 0; k < kClasses; ++k) logits.push_back(rng.normal() + (k == truth ? skill : 0));
      const auto best = std::max_element(logits.begin(), logits.end());
      double sum = 0, higher = 0;
      for (const double logit : logits) {
        sum += std::exp(logit - *best);
        higher += logit > logits[truth] ? 1 : 0;
      }
      drawn.truth_class.push_back(static_cast<int32_t>(truth));
      drawn.predicted_class.push_back(static_cast<int32_t>(best - logits.begin()));
      drawn.in_top5.push_back(higher < 5 ? 1 : 0);
      drawn.confidence.push_back(static_cast<float>(1 / sum));
      drawn.loss.push_back(static_cast<float>(std::log(sum) + *best - logits[truth]));
      continue;
    }
    double loss = 0;
    for (int64_t k = 0; k < drawn.columns; ++k) {
      if (task == TaskKind::regression) {
        const double truth = rng.normal(), output = truth + 0.5 * rng.normal();
        drawn.truth.push_back(static_cast<float>(truth));
        drawn.outputs.push_back(static_cast<float>(output));
        loss += std::abs(output - truth) / 2;
      } else {
        const bool truth = rng.chance(0.3);
        const double logit = rng.normal() + (truth ? skill / 2 : -skill / 2);
        drawn.truth.push_back(truth ? 1 : 0);
        drawn.outputs.push_back(static_cast<float>(logit));
        loss += std::log1p(std::exp(truth ? -logit : logit)) / static_cast<double>(drawn.columns);
      }
    }
    drawn.loss.push_back(static_cast<float>(loss));
  }
  return drawn;
}

}  // namespace stoker::statistics
