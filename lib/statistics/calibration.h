// SPDX-License-Identifier: Apache-2.0
// Whether predictions with 80 % confidence are right in 80 of 100 cases.
#pragma once

#include <cstdint>
#include <vector>

#include "statistics/bootstrap.h"
#include "statistics/evaluated_samples.h"

namespace stoker::statistics {

/// Answers whose confidence lies in (low, high], the first bin from 0 on.
struct ReliabilityBin {
  double low = 0, high = 1;
  int64_t answers = 0;
  double confidence = 0;    ///< mean; NaN where the bin is empty
  double right = 0;         ///< share; NaN where the bin is empty
  Interval right_interval;  ///< Wilson's, 95 %
};

struct Calibration {
  /// Expected calibration error, 0 to 1: mean over answers of |confidence - share that is right| of their bin (Naeini,
  /// Cooper, Hauskrecht, AAAI 2015; Guo et al., ICML 2017).
  double ece = 0;
  /// The ece that a perfectly calibrated network exceeds in 5 of 100 cases on the same number of answers: an ece below
  /// it is no finding.
  double chance_ece = 0;
  double confidence = 0, right = 0;  ///< means over all answers
  std::vector<ReliabilityBin> bins;
};

inline constexpr int kReliabilityBins = 15;

/// confidence [n] in [0, 1]; right [n], 0 or 1. All 0 for no answer.
Calibration calibration_of(const std::vector<float>& confidence, const std::vector<uint8_t>& right, uint64_t seed,
                           int bins = kReliabilityBins);
/// Of the predicted class (multiclass), of the probability that is given to a positive (binary; multilabel: of all
/// labels together). Not for tasks that learn numbers.
Calibration calibration_of(const EvaluatedSamples& samples, uint64_t seed);

}  // namespace stoker::statistics
