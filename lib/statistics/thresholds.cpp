// SPDX-License-Identifier: Apache-2.0
#include "statistics/thresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "config/task_facts.h"

namespace stoker::statistics {
namespace {

double probability_of(double logit) { return 1 / (1 + std::exp(-logit)); }

struct Totals {
  double positives = 0, negatives = 0;
};

/// The metrics when `hits` positives and `misses` negatives are predicted to be positive.
struct Figures {
  double f1 = 0, accuracy = 0, balanced_accuracy = 0;
};

Figures figures_of(double hits, double misses, const Totals& totals) {
  const double predicted = hits + misses, right = hits + totals.negatives - misses;
  return {predicted + totals.positives > 0 ? 2 * hits / (predicted + totals.positives) : 0,
          right / (totals.positives + totals.negatives),
          0.5 * (hits / totals.positives + (totals.negatives - misses) / totals.negatives)};
}

/// Takes `threshold` when it is better than the best so far, or as good and nearer to the present one.
void offer(double threshold, double value, double now, BestThreshold& best) {
  const bool is_better = value > best.value + 1e-12;
  const bool is_nearer = value > best.value - 1e-12 && std::abs(threshold - now) < std::abs(best.threshold - now);
  if (std::isnan(best.threshold) || is_better || is_nearer) {
    best.threshold = threshold;
    best.value = value;
  }
}

LabelThresholds thresholds_of(const RankedSamples& ranked, double now) {
  struct Step {
    double score, hits, misses;
  };
  std::vector<Step> steps = {{std::numeric_limits<double>::infinity(), 0, 0}};  // no label is predicted
  ranked.for_each_score([&](float score, int64_t hits, int64_t misses) {
    steps.push_back({score, static_cast<double>(hits), static_cast<double>(misses)});
  });
  const Totals totals = {steps.back().hits, steps.back().misses};
  LabelThresholds best;
  best.f1.threshold = best.accuracy.threshold = best.balanced_accuracy.threshold = std::nan("");
  if (totals.positives == 0 || totals.negatives == 0) return best;
  const double least = std::log(now / (1 - now));
  for (size_t i = 0; i < steps.size(); ++i) {
    const Figures figures = figures_of(steps[i].hits, steps[i].misses, totals);
    const double above = probability_of(steps[i].score);
    const double below = i + 1 < steps.size() ? probability_of(steps[i + 1].score) : 0;
    const double threshold = (above + below) / 2;
    offer(threshold, figures.f1, now, best.f1);
    offer(threshold, figures.accuracy, now, best.accuracy);
    offer(threshold, figures.balanced_accuracy, now, best.balanced_accuracy);
    if (steps[i].score < static_cast<float>(least)) continue;  // not predicted at the present threshold
    best.f1.value_now = figures.f1;
    best.accuracy.value_now = figures.accuracy;
    best.balanced_accuracy.value_now = figures.balanced_accuracy;
  }
  return best;
}

/// No points without a positive or a negative.
LabelCurve curve_of(const RankedSamples& ranked, int64_t label) {
  LabelCurve curve;
  curve.label = label;
  std::vector<double> scores, hits, misses;
  ranked.for_each_score([&](float score, int64_t so_many_hits, int64_t so_many_misses) {
    scores.push_back(probability_of(score));
    hits.push_back(static_cast<double>(so_many_hits));
    misses.push_back(static_cast<double>(so_many_misses));
  });
  if (scores.empty() || hits.back() == 0 || misses.back() == 0) return curve;
  const double positives = hits.back();
  curve.positives = static_cast<int64_t>(positives);
  const size_t points = std::min(kCurvePoints, scores.size());
  for (size_t i = 0; i < points; ++i) {
    const size_t at = points == 1 ? 0 : i * (scores.size() - 1) / (points - 1);
    curve.recall.push_back(hits[at] / positives);
    curve.precision.push_back(hits[at] / (hits[at] + misses[at]));
  }
  for (size_t i = 0; i < kCurvePoints; ++i) {
    const double threshold = static_cast<double>(i) / (kCurvePoints - 1);
    const auto predicted = static_cast<size_t>(
        std::partition_point(scores.begin(), scores.end(), [&](double score) { return score >= threshold; }) -
        scores.begin());
    curve.threshold.push_back(threshold);
    curve.f1.push_back(
        predicted == 0 ? 0 : 2 * hits[predicted - 1] / (hits[predicted - 1] + misses[predicted - 1] + positives));
  }
  return curve;
}

}  // namespace

std::vector<LabelCurve> label_curves(const EvaluatedSamples& samples, size_t most) {
  std::vector<LabelCurve> curves;
  if (samples.outputs.empty()) return curves;
  const auto add = [&](LabelCurve curve) {
    if (curve.positives > 0) curves.push_back(std::move(curve));
  };
  for (int64_t label = 0; label < samples.columns; ++label) {
    add(curve_of({samples.outputs.data() + label, samples.truth.data() + label, samples.count(), samples.columns},
                 label));
  }
  std::stable_sort(curves.begin(), curves.end(),
                   [](const LabelCurve& a, const LabelCurve& b) { return a.positives > b.positives; });
  if (curves.size() > most) curves.resize(most);
  if (samples.columns == 1) return curves;
  LabelCurve all = curve_of({samples.outputs.data(), samples.truth.data(), samples.count() * samples.columns, 1}, -1);
  if (all.positives > 0) curves.insert(curves.begin(), std::move(all));
  return curves;
}

std::vector<LabelThresholds> best_thresholds(const EvaluatedSamples& samples) {
  std::vector<LabelThresholds> thresholds;
  for (int64_t label = 0; label < samples.columns; ++label) {
    const RankedSamples ranked(samples.outputs.data() + label, samples.truth.data() + label, samples.count(),
                               samples.columns);
    thresholds.push_back(thresholds_of(ranked, config::threshold_of(samples.threshold, static_cast<size_t>(label))));
  }
  return thresholds;
}

RankedSamples::RankedSamples(const float* scores, const float* positive, int64_t n, int64_t stride)
    : order_(static_cast<size_t>(n)) {
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](uint32_t a, uint32_t b) { return scores[a * stride] > scores[b * stride]; });
  for (const uint32_t sample : order_) {
    score_.push_back(scores[sample * stride]);
    positive_.push_back(positive[sample * stride] > 0.5f ? 1 : 0);
  }
}

Areas RankedSamples::areas(const std::vector<uint32_t>& weights) const {
  double hits = 0, misses = 0, hits_before = 0, misses_before = 0, twice_roc = 0, pr = 0;
  for (size_t i = 0; i < order_.size(); ++i) {
    (positive_[i] != 0 ? hits : misses) += weights[order_[i]];
    if (i + 1 < order_.size() && score_[i] == score_[i + 1]) continue;
    twice_roc += (misses - misses_before) * (hits + hits_before);
    if (hits > hits_before) pr += (hits - hits_before) * hits / (hits + misses);
    hits_before = hits;
    misses_before = misses;
  }
  Areas areas;
  areas.roc_auc = hits > 0 && misses > 0 ? twice_roc / (2 * hits * misses) : std::numeric_limits<double>::quiet_NaN();
  areas.pr_auc = hits > 0 ? pr / hits : std::numeric_limits<double>::quiet_NaN();
  return areas;
}

}  // namespace stoker::statistics
