// SPDX-License-Identifier: Apache-2.0
#include "statistics/calibration.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"

namespace stoker::statistics {
namespace {

constexpr int kTrials = 200;
constexpr int64_t kMaxInATrial = 100'000;  // answers; more make no difference to a chance that is next to 0

struct BinSums {
  int64_t answers = 0;
  double confidence = 0, right = 0;
};

size_t bin_of(float confidence, int bins) {
  const double place = std::ceil(double{confidence} * bins) - 1;
  return static_cast<size_t>(std::clamp(place, 0.0, static_cast<double>(bins - 1)));
}

double ece_of(const std::vector<BinSums>& sums, double answers) {
  double ece = 0;
  for (const BinSums& sum : sums) ece += std::abs(sum.confidence - sum.right) / answers;
  return ece;
}

/// The ece of answers that are right by chance, each as often as its confidence.
double trial(const std::vector<float>& confidence, const std::vector<size_t>& bin, int64_t answers, int bins,
             core::Rng& rng) {
  std::vector<BinSums> sums(static_cast<size_t>(bins));
  const auto step = confidence.size() / static_cast<size_t>(answers);
  for (size_t i = 0, taken = 0; taken < static_cast<size_t>(answers); i += step, ++taken) {
    sums[bin[i]].confidence += confidence[i];
    sums[bin[i]].right += rng.chance(confidence[i]) ? 1 : 0;
  }
  return ece_of(sums, static_cast<double>(answers));
}

double chance_ece_of(const std::vector<float>& confidence, const std::vector<size_t>& bin, int bins, uint64_t seed) {
  const auto all = static_cast<int64_t>(confidence.size());
  const int64_t answers = std::min(all, kMaxInATrial);
  std::vector<double> eces;
  for (uint64_t k = 0; k < kTrials; ++k) {
    core::Rng rng(seed, core::RngPurpose::bootstrap, 1, k);
    eces.push_back(trial(confidence, bin, answers, bins, rng));
  }
  std::sort(eces.begin(), eces.end());
  // Errors of chance shrink with the root of the number.
  return eces[kTrials * 95 / 100] * std::sqrt(static_cast<double>(answers) / static_cast<double>(all));
}

}  // namespace

Calibration calibration_of(const std::vector<float>& confidence, const std::vector<uint8_t>& right, uint64_t seed,
                           int bins) {
  constexpr double kLevel = 0.95;
  Calibration calibration;
  if (confidence.empty()) return calibration;
  const auto answers = static_cast<double>(confidence.size());
  std::vector<BinSums> sums(static_cast<size_t>(bins));
  std::vector<size_t> bin(confidence.size());
  for (size_t i = 0; i < confidence.size(); ++i) {
    BinSums& of = sums[bin[i] = bin_of(confidence[i], bins)];
    ++of.answers;
    of.confidence += confidence[i];
    of.right += right[i];
    calibration.confidence += double{confidence[i]} / answers;
    calibration.right += right[i] / answers;
  }
  calibration.ece = ece_of(sums, answers);
  calibration.chance_ece = chance_ece_of(confidence, bin, bins, seed);
  for (int k = 0; k < bins; ++k) {
    const BinSums& of = sums[static_cast<size_t>(k)];
    const auto count = static_cast<double>(of.answers);  // 0 / 0 is NaN
    calibration.bins.push_back({static_cast<double>(k) / bins, (k + 1.0) / bins, of.answers, of.confidence / count,
                                of.right / count, wilson_interval(static_cast<int64_t>(of.right), of.answers, kLevel)});
  }
  return calibration;
}

Calibration calibration_of(const EvaluatedSamples& samples, uint64_t seed) {
  std::vector<float> confidence;
  std::vector<uint8_t> right;
  if (samples.task == config::TaskKind::multiclass) {
    for (size_t i = 0; i < samples.samples.size(); ++i) {
      confidence.push_back(samples.confidence[i]);
      right.push_back(samples.truth_class[i] == samples.predicted_class[i] ? 1 : 0);
    }
  } else {
    for (size_t i = 0; i < samples.outputs.size(); ++i) {
      confidence.push_back(static_cast<float>(1 / (1 + std::exp(-double{samples.outputs[i]}))));
      right.push_back(samples.truth[i] > 0.5f ? 1 : 0);
    }
  }
  return calibration_of(confidence, right, seed);
}

}  // namespace stoker::statistics
