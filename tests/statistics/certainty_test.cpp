// SPDX-License-Identifier: Apache-2.0
#include "statistics/certainty.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "config/task_facts.h"
#include "simulated.h"
#include "statistics/weighted_metrics.h"

namespace stoker::statistics {
namespace {

using config::TaskKind;

std::vector<double> values(const EvaluatedSamples& samples, const std::vector<uint32_t>& weights) {
  const auto metrics = make_weighted_metrics(samples);
  std::vector<double> values(metrics->names().size());
  metrics->values(weights, values.data());
  return values;
}

/// Sample 0 three times, sample 1 not at all, the others once.
EvaluatedSamples repeated(const EvaluatedSamples& all) {
  EvaluatedSamples repeated = all;
  const auto columns = static_cast<size_t>(all.columns);
  for (auto* const list : {&repeated.truth_class, &repeated.predicted_class}) {
    if (!list->empty()) list->insert(list->end(), {(*list)[0], (*list)[0]});
  }
  if (!all.in_top5.empty()) repeated.in_top5.insert(repeated.in_top5.end(), 2, all.in_top5[0]);
  for (auto* const list : {&repeated.loss, &repeated.confidence}) {
    if (!list->empty()) list->insert(list->end(), {(*list)[0], (*list)[0]});
  }
  for (int times = 0; times < 2; ++times) {
    repeated.samples.push_back(all.count() + times);
    for (size_t k = 0; k < columns && !all.outputs.empty(); ++k) {
      repeated.outputs.push_back(all.outputs[k]);
      repeated.truth.push_back(all.truth[k]);
    }
  }
  return repeated;
}

TEST(WeightedMetricsTest, AWeightOfThreeIsThreeSamplesAndOneOf0IsNone) {
  for (const TaskKind task : {TaskKind::multiclass, TaskKind::binary, TaskKind::multilabel, TaskKind::regression}) {
    const EvaluatedSamples all = simulated(task, 40, 3);
    std::vector<uint32_t> weights(40, 1), of_repeated(42, 1);
    weights[0] = 3;
    weights[1] = of_repeated[1] = 0;
    const std::vector<double> weighted = values(all, weights), written_out = values(repeated(all), of_repeated);
    for (size_t k = 0; k < weighted.size(); ++k) EXPECT_NEAR(weighted[k], written_out[k], 1e-12);
  }
}

TEST(CertaintyTest, EveryFigureLiesInItsInterval) {
  for (const TaskKind task : {TaskKind::multiclass, TaskKind::binary, TaskKind::multilabel, TaskKind::regression}) {
    const Certainty certainty = certainty_of(simulated(task, 300, 5), {});
    EXPECT_EQ(certainty.samples, 300);
    EXPECT_EQ(certainty.metrics.front().name, "loss");
    for (const MetricEstimate& metric : certainty.metrics) {
      EXPECT_LE(metric.interval.low, metric.value) << metric.name;
      EXPECT_GE(metric.interval.high, metric.value) << metric.name;
      EXPECT_LT(metric.interval.low, metric.interval.high) << metric.name;
    }
    EXPECT_EQ(certainty.calibration.has_value(), task != TaskKind::regression);
    EXPECT_EQ(certainty.thresholds.size(), task == TaskKind::binary ? 1u : task == TaskKind::multilabel ? 2u : 0u);
  }
}

TEST(CertaintyTest, AFlawlessNetworkIsNotCertain) {
  EvaluatedSamples flawless = simulated(TaskKind::multiclass, 50, 1);
  flawless.predicted_class = flawless.truth_class;
  const Certainty certainty = certainty_of(flawless, {});
  EXPECT_EQ(certainty.metrics[1].name, "top1");
  EXPECT_EQ(certainty.metrics[1].value, 100);
  EXPECT_NEAR(certainty.metrics[1].interval.low, 92.865, 1e-3);
}

TEST(ComparisonTest, ABetterNetworkWinsOnTheSamplesThatBothHaveSeen) {
  EvaluatedSamples good = simulated(TaskKind::multiclass, 500, 1), bad = good;
  for (size_t i = 0; i < 40; ++i) bad.predicted_class[i] = (bad.truth_class[i] + 1) % 6;
  // The same in another order, and a sample that only one has.
  std::reverse(bad.samples.begin(), bad.samples.end());
  std::reverse(bad.loss.begin(), bad.loss.end());
  std::reverse(bad.truth_class.begin(), bad.truth_class.end());
  std::reverse(bad.predicted_class.begin(), bad.predicted_class.end());
  std::reverse(bad.in_top5.begin(), bad.in_top5.end());
  std::reverse(bad.confidence.begin(), bad.confidence.end());
  bad.samples.front() = 777;
  const Comparison comparison = compare(good, bad, {});
  EXPECT_EQ(comparison.samples, 499);
  EXPECT_EQ(comparison.left_out, 2);
  const Comparison::Difference& loss = comparison.metrics[0];
  EXPECT_EQ(loss.difference(), 0);
  EXPECT_EQ(loss.winner(), 0);
  const Comparison::Difference& top1 = comparison.metrics[1];
  EXPECT_GT(top1.difference(), 3);
  EXPECT_EQ(top1.winner(), 1);
  EXPECT_EQ(compare(bad, good, {}).metrics[1].winner(), -1);
}

TEST(ComparisonTest, OfTheSameSamplesIsSurerThanTwoIntervals) {
  const EvaluatedSamples first = simulated(TaskKind::binary, 1000, 1);
  EvaluatedSamples second = first;
  for (size_t i = 0; i < second.outputs.size(); i += 25) second.outputs[i] = -second.outputs[i];
  const Comparison comparison = compare(first, second, {});
  const Certainty of_first = certainty_of(first, {}), of_second = certainty_of(second, {});
  EXPECT_EQ(comparison.metrics[1].winner(), 1) << "accuracy";
  EXPECT_LT(of_first.metrics[1].interval.low, of_second.metrics[1].interval.high) << "the intervals overlap";
}

TEST(ComparisonTest, ThreeOf240ImagesNameNoWinner) {
  EvaluatedSamples good = simulated(TaskKind::multiclass, 240, 1);
  good.predicted_class = good.truth_class;
  EvaluatedSamples bad = good;
  for (size_t i = 0; i < 3; ++i) bad.predicted_class[i] = (bad.truth_class[i] + 1) % 6;
  for (const Comparison::Difference& metric : compare(good, bad, {}).metrics)
    EXPECT_EQ(metric.winner(), 0) << metric.name;
  EXPECT_DOUBLE_EQ(compare(good, bad, {}).metrics[1].p_value, 0.25) << "the sign test of 3 to 0, whatever the seed";
  for (size_t i = 0; i < 9; ++i) bad.predicted_class[i] = (bad.truth_class[i] + 1) % 6;
  EXPECT_EQ(compare(good, bad, {}).metrics[1].winner(), 1) << "9 to 0: p is 0.004";
}

TEST(ComparisonTest, WhatIsBetterWhenLowerIsWonByTheLower) {
  EvaluatedSamples good = simulated(TaskKind::regression, 300, 2), bad = good;
  for (float& loss : bad.loss) loss += 1;
  EXPECT_EQ(compare(good, bad, {}).metrics[0].winner(), 1);
}

TEST(CalibrationTest, BinsHoldWhatTheyShould) {
  // Bins of a tenth: 0.95 twice (one right), 0.25 once (wrong), 0 once (right).
  const Calibration calibration = calibration_of({0.95f, 0.95f, 0.25f, 0}, {1, 0, 0, 1}, 0, 10);
  EXPECT_EQ(calibration.bins[9].answers, 2);
  EXPECT_NEAR(calibration.bins[9].right, 0.5, 1e-12);
  EXPECT_EQ(calibration.bins[2].answers, 1);
  EXPECT_EQ(calibration.bins[0].answers, 1);
  EXPECT_TRUE(std::isnan(calibration.bins[5].right));
  EXPECT_NEAR(calibration.ece, (2 * 0.45 + 0.25 + 1) / 4, 1e-6);
}

TEST(CalibrationTest, ACalibratedNetworkStaysBelowChance) {
  core::Rng rng(3, core::RngPurpose::probe, 0, 0);
  std::vector<float> confidence;
  std::vector<uint8_t> honest, boasting;
  for (int i = 0; i < 2000; ++i) {
    confidence.push_back(static_cast<float>(rng.uniform(0.5, 1)));
    honest.push_back(rng.chance(confidence.back()) ? 1 : 0);
    boasting.push_back(rng.chance(confidence.back() - 0.1) ? 1 : 0);
  }
  const Calibration good = calibration_of(confidence, honest, 0), bad = calibration_of(confidence, boasting, 0);
  EXPECT_LT(good.ece, good.chance_ece);
  EXPECT_GT(bad.ece, bad.chance_ece);
  EXPECT_NEAR(bad.ece, 0.1, 0.03);
}

EvaluatedSamples binary_of(const std::vector<float>& logits, const std::vector<float>& truth) {
  EvaluatedSamples samples;
  samples.task = TaskKind::binary;
  samples.columns = 1;
  samples.outputs = logits;
  samples.truth = truth;
  for (size_t i = 0; i < logits.size(); ++i) samples.samples.push_back(static_cast<int64_t>(i));
  samples.loss.assign(logits.size(), 0);
  return samples;
}

TEST(ThresholdsTest, LieWhereTheFigureIsBest) {
  const auto best = best_thresholds(binary_of({-3, -2, -1.5f, -1, 2}, {0, 0, 1, 1, 1})).front();
  const double expected = (1 / (1 + std::exp(2.0)) + 1 / (1 + std::exp(1.5))) / 2;
  EXPECT_NEAR(best.f1.threshold, expected, 1e-6);
  EXPECT_EQ(best.f1.value, 1);
  EXPECT_NEAR(best.f1.value_now, 2.0 * 1 / (1 + 3), 1e-12);
  EXPECT_EQ(best.accuracy.value, 1);
  EXPECT_NEAR(best.accuracy.value_now, 0.6, 1e-12);
  EXPECT_NEAR(best.balanced_accuracy.value_now, 0.5 * (1 + 1.0 / 3), 1e-12);
}

TEST(ThresholdsTest, CurvesAreSmallAndExact) {
  const LabelCurve curve = label_curves(binary_of({-3, -2, -1.5f, -1, 2}, {0, 0, 1, 0, 1}), 20).at(0);
  EXPECT_EQ(curve.recall, (std::vector<double>{0.5, 0.5, 1, 1, 1}));
  EXPECT_EQ(curve.precision, (std::vector<double>{1, 0.5, 2.0 / 3, 0.5, 0.4}));
  EXPECT_NEAR(curve.f1[50], 2.0 * 1 / (1 + 2), 1e-12) << "from 0.5 on one is predicted, and it is right";
  EXPECT_NEAR(curve.f1[15], 2.0 * 2 / (3 + 2), 1e-12) << "0.15 lies below the three highest scores";
  EXPECT_EQ(curve.f1[100], 0) << "nothing has a probability of 1";
  EvaluatedSamples many = binary_of({}, {});
  for (int i = 0; i < 5000; ++i) {
    many.samples.push_back(i);
    many.outputs.push_back(static_cast<float>(i % 997));
    many.truth.push_back(static_cast<float>(i % 2));
  }
  EXPECT_EQ(label_curves(many, 20).at(0).recall.size(), kCurvePoints);
  EXPECT_EQ(label_curves(many, 20).at(0).recall.back(), 1);
}

TEST(ThresholdsTest, CurvesOfLabelsBeginWithAllOfThemThenTheMostFrequent) {
  EvaluatedSamples samples = binary_of({}, {});
  samples.task = config::TaskKind::multilabel;
  samples.columns = 3;
  samples.samples = {0, 1, 2, 3};
  samples.outputs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  samples.truth = {0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1};  // the third label has no negative
  const std::vector<LabelCurve> curves = label_curves(samples, 2);
  ASSERT_EQ(curves.size(), 3u);
  EXPECT_EQ(curves[0].label, -1);
  EXPECT_EQ(curves[0].positives, 6);
  EXPECT_EQ(curves[1].label, 0) << "the first of equally frequent ones";
  EXPECT_TRUE(label_curves(binary_of({-1, 1}, {1, 1}), 20).empty());
}

/// `times` too sure: answers are drawn from the probabilities of outputs / times.
EvaluatedSamples too_sure(TaskKind task, int64_t count, float times, uint64_t seed) {
  core::Rng rng(seed, core::RngPurpose::probe, 5, 0);
  EvaluatedSamples raw;
  raw.task = task;
  raw.columns = task == TaskKind::binary ? 1 : 4;
  for (int64_t i = 0; i < count; ++i) {
    raw.samples.push_back(i);
    raw.loss.push_back(0);
    std::vector<double> weights;
    for (int64_t k = 0; k < raw.columns; ++k) {
      const double logit = 1.5 * rng.normal();
      weights.push_back(std::exp(logit));
      raw.outputs.push_back(static_cast<float>(logit) * times);
      if (task != TaskKind::multiclass) raw.truth.push_back(rng.chance(weights.back() / (1 + weights.back())) ? 1 : 0);
    }
    if (task != TaskKind::multiclass) continue;
    double at = rng.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    size_t truth = 0;
    while (truth + 1 < weights.size() && at >= weights[truth]) at -= weights[truth++];
    raw.truth_class.push_back(static_cast<int32_t>(truth));
    raw.predicted_class.push_back(
        static_cast<int32_t>(std::max_element(weights.begin(), weights.end()) - weights.begin()));
    raw.in_top5.push_back(1);
    raw.confidence.push_back(0);
  }
  return raw;
}

TEST(ProbabilityFitTest, FindsHowMuchTooSureOutputsAre) {
  for (const TaskKind task : {TaskKind::multiclass, TaskKind::binary, TaskKind::multilabel}) {
    for (const float times : {0.4f, 1.f, 3.f}) {
      const EvaluatedSamples raw = too_sure(task, 20'000, times, 1);
      const ProbabilityFit fit = fit_probabilities(raw);
      EXPECT_NEAR(fit.temperature, times, 0.05 * times);
      EXPECT_FALSE(fit.is_lowest || fit.is_highest);
      EXPECT_EQ(fit.threshold.size(), task == TaskKind::multilabel ? 4u : 1u);
      const FitCheck check = check_fit(raw, 7);
      EXPECT_EQ(check.fitted + check.judged, raw.count());
      EXPECT_LT(check.after.ece, 2 * check.after.chance_ece);
      if (times != 1.f) {
        EXPECT_LT(check.after.ece, check.before.ece / 3);
        EXPECT_LT(check.after.loss, check.before.loss);
      }
      EXPECT_EQ(check_fit(raw, 7).after.ece, check.after.ece) << "drawn by the seed alone";
      EXPECT_NE(check_fit(raw, 8).after.ece, check.after.ece);
    }
  }
}

TEST(ProbabilityFitTest, ThresholdsHaveTheBestF1OfEachLabel) {
  EvaluatedSamples raw = too_sure(TaskKind::multilabel, 400, 2, 3);
  for (size_t i = 3; i < raw.truth.size(); i += 4) raw.truth[i] = 0;  // nobody has the last label
  raw.threshold = {0.5, 0.5, 0.5, 0.25};
  const ProbabilityFit fit = fit_probabilities(raw);
  EXPECT_EQ(fit.threshold[3], 0.25) << "kept";
  const auto f1_at = [&](size_t label, double threshold) {
    double hits = 0, predicted = 0, actual = 0;
    for (size_t i = label; i < raw.outputs.size(); i += 4) {
      const bool is_predicted = 1 / (1 + std::exp(-double{raw.outputs[i]} / fit.temperature)) >= threshold;
      hits += is_predicted && raw.truth[i] > 0 ? 1 : 0;
      predicted += is_predicted ? 1 : 0;
      actual += raw.truth[i];
    }
    return 2 * hits / (predicted + actual);
  };
  for (size_t label = 0; label < 3; ++label) {
    for (double other = 0.005; other < 1; other += 0.005) {
      EXPECT_GE(f1_at(label, fit.threshold[label]), f1_at(label, other) - 1e-9) << label << " " << other;
    }
  }
}

TEST(ProbabilityFitTest, WhatMakesHeldOutImagesWorseIsLeftOutAndTheRestPredictsAsFitted) {
  const EvaluatedSamples raw = too_sure(TaskKind::multilabel, 400, 2, 3);
  ProbabilityFit fit = fit_probabilities(raw);
  FitCheck check;
  check.before.loss = check.before.f1 = check.after.loss = check.after.f1 = 0.5;
  EXPECT_EQ(without_worse(fit, check, raw).temperature, fit.temperature);
  EXPECT_NEAR(without_worse(fit, check, raw).threshold[1], fit.threshold[1], 1e-12);
  const auto logit = [](double temperature, double threshold) { return temperature * config::logit_of(threshold); };
  check.after.loss = 0.6;
  const ProbabilityFit cuts = without_worse(fit, check, raw);
  EXPECT_EQ(cuts.temperature, 1);
  EXPECT_NEAR(logit(1, cuts.threshold[1]), logit(fit.temperature, fit.threshold[1]), 1e-9) << "the same labels";
  check.after.f1 = 0.4;
  EXPECT_NEAR(without_worse(fit, check, raw).threshold[1], config::threshold_of(raw.threshold, 1), 1e-12);
  check.after.loss = 0.5;
  const ProbabilityFit temperature = without_worse(fit, check, raw);
  EXPECT_EQ(temperature.temperature, fit.temperature);
  EXPECT_NEAR(logit(temperature.temperature, temperature.threshold[1]),
              config::logit_of(config::threshold_of(raw.threshold, 1)), 1e-9);
}

TEST(ProbabilityFitTest, WhereAllIsRightTheTemperatureIsAtItsLimit) {
  EvaluatedSamples raw = too_sure(TaskKind::multiclass, 50, 1, 2);
  raw.truth_class = raw.predicted_class;
  const ProbabilityFit fit = fit_probabilities(raw);
  EXPECT_TRUE(fit.is_lowest);
  EXPECT_NEAR(fit.temperature, 0.05, 1e-9);
}

TEST(ThresholdsTest, OfOneClassAloneThereIsNone) {
  EXPECT_TRUE(std::isnan(best_thresholds(binary_of({-1, 1}, {1, 1})).front().f1.threshold));
}

}  // namespace
}  // namespace stoker::statistics
