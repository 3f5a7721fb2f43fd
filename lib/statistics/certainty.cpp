// SPDX-License-Identifier: Apache-2.0
#include "statistics/certainty.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "statistics/weighted_metrics.h"

namespace stoker::statistics {
namespace {

constexpr int64_t kFew = 20;  // samples with or without a property, of which resamples hold too few to judge

bool has_labels(config::TaskKind task) {
  return task == config::TaskKind::binary || task == config::TaskKind::multilabel;
}

/// Rows `kept` of [n, columns].
template <typename T>
std::vector<T> rows_of(const std::vector<T>& values, const std::vector<size_t>& kept, size_t columns) {
  std::vector<T> rows;
  if (values.empty()) return rows;
  for (const size_t row : kept) {
    for (size_t k = 0; k < columns; ++k) rows.push_back(values[row * columns + k]);
  }
  return rows;
}

EvaluatedSamples part_of(const EvaluatedSamples& all, const std::vector<size_t>& kept) {
  const auto columns = static_cast<size_t>(all.columns);
  EvaluatedSamples part;
  part.task = all.task;
  part.columns = all.columns;
  part.threshold = all.threshold;
  part.samples = rows_of(all.samples, kept, 1);
  part.loss = rows_of(all.loss, kept, 1);
  part.truth_class = rows_of(all.truth_class, kept, 1);
  part.predicted_class = rows_of(all.predicted_class, kept, 1);
  part.in_top5 = rows_of(all.in_top5, kept, 1);
  part.confidence = rows_of(all.confidence, kept, 1);
  part.outputs = rows_of(all.outputs, kept, columns);
  part.truth = rows_of(all.truth, kept, columns);
  return part;
}

/// Positions of samples in order of their index.
std::vector<size_t> by_index(const EvaluatedSamples& samples) {
  std::vector<size_t> order(samples.samples.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return samples.samples[a] < samples.samples[b]; });
  return order;
}

/// Those that both have, in the same order.
std::pair<EvaluatedSamples, EvaluatedSamples> shared(const EvaluatedSamples& first, const EvaluatedSamples& second) {
  const std::vector<size_t> of_first = by_index(first), of_second = by_index(second);
  std::vector<size_t> kept_first, kept_second;
  for (size_t i = 0, k = 0; i < of_first.size() && k < of_second.size();) {
    const int64_t a = first.samples[of_first[i]], b = second.samples[of_second[k]];
    if (a == b) {
      kept_first.push_back(of_first[i]);
      kept_second.push_back(of_second[k]);
    }
    i += a <= b ? 1 : 0;
    k += b <= a ? 1 : 0;
  }
  return {part_of(first, kept_first), part_of(second, kept_second)};
}

std::vector<double> values_of(const WeightedMetrics& metrics, int64_t samples) {
  std::vector<double> values(metrics.names().size(), std::nan(""));
  if (samples > 0) metrics.values(std::vector<uint32_t>(static_cast<size_t>(samples), 1), values.data());
  return values;
}

/// Rows of `first`, then those of `second`.
EvaluatedSamples joined(EvaluatedSamples first, const EvaluatedSamples& second) {
  const auto append = [](auto& rows, const auto& more) { rows.insert(rows.end(), more.begin(), more.end()); };
  append(first.samples, second.samples);
  append(first.loss, second.loss);
  append(first.truth_class, second.truth_class);
  append(first.predicted_class, second.predicted_class);
  append(first.in_top5, second.in_top5);
  append(first.confidence, second.confidence);
  append(first.outputs, second.outputs);
  append(first.truth, second.truth);
  return first;
}

/// Samples that have the property of a share for the first network alone, and for the second alone.
std::pair<int64_t, int64_t> samples_that_differ(const WeightedMetrics& first, const WeightedMetrics& second,
                                                size_t metric, int64_t samples) {
  std::pair<int64_t, int64_t> differ{0, 0};
  for (size_t i = 0; i < static_cast<size_t>(samples); ++i) {
    const bool one = first.has_property(metric, i), other = second.has_property(metric, i);
    differ.first += one && !other ? 1 : 0;
    differ.second += other && !one ? 1 : 0;
  }
  return differ;
}

}  // namespace

Certainty certainty_of(const EvaluatedSamples& samples, const BootstrapSettings& settings) {
  const auto metrics = make_weighted_metrics(samples);
  const std::vector<MetricName>& names = metrics->names();
  const std::vector<double> values = values_of(*metrics, samples.count());
  const std::vector<Interval> intervals = bootstrap(
      samples.count(), names.size(),
      [&](const std::vector<uint32_t>& weights, double* figures) { metrics->values(weights, figures); }, settings);
  Certainty certainty;
  certainty.samples = samples.count();
  certainty.settings = settings;
  for (size_t k = 0; k < names.size(); ++k) {
    MetricEstimate metric = {names[k].name, values[k], intervals[k], names[k].lower_is_better};
    if (names[k].is_share) {
      const auto hits = static_cast<int64_t>(std::llround(values[k] / 100 * static_cast<double>(samples.count())));
      if (std::min(hits, samples.count() - hits) < kFew) {
        const Interval share = wilson_interval(hits, samples.count(), settings.level);
        metric.interval = {100 * share.low, 100 * share.high};
      }
    }
    certainty.metrics.push_back(metric);
  }
  if (has_labels(samples.task)) certainty.thresholds = best_thresholds(samples);
  if (has_labels(samples.task) || samples.task == config::TaskKind::multiclass) {
    certainty.calibration = calibration_of(samples, settings.seed);
  }
  return certainty;
}

int Comparison::Difference::winner() const {
  const int higher = interval.low > 0 ? 1 : interval.high < 0 ? -1 : 0;
  return lower_is_better ? -higher : higher;
}

Comparison compare(const EvaluatedSamples& first, const EvaluatedSamples& second, const BootstrapSettings& settings) {
  const auto [a, b] = shared(first, second);
  const auto of_a = make_weighted_metrics(a), of_b = make_weighted_metrics(b);
  const std::vector<MetricName>& names = of_a->names();
  const std::vector<double> values_a = values_of(*of_a, a.count()), values_b = values_of(*of_b, b.count());
  const auto difference = [&, &metrics_a = *of_a, &metrics_b = *of_b](const std::vector<uint32_t>& weights,
                                                                      double* figures) {
    std::vector<double> theirs(metrics_b.names().size());
    metrics_a.values(weights, figures);
    metrics_b.values(weights, theirs.data());
    for (size_t k = 0; k < theirs.size(); ++k) figures[k] -= theirs[k];
  };
  const std::vector<Interval> intervals = bootstrap(a.count(), names.size(), difference, settings);
  const EvaluatedSamples both = joined(a, b);
  const auto of_both = make_weighted_metrics(both);
  const std::vector<double> chances = difference_p_values(
      a.count(), names.size(),
      [&](const std::vector<uint32_t>& weights, double* figures) { of_both->values(weights, figures); }, settings);
  Comparison comparison;
  comparison.samples = a.count();
  comparison.left_out = first.count() + second.count() - 2 * a.count();
  for (size_t k = 0; k < names.size(); ++k) {
    Interval interval = intervals[k];
    if (names[k].is_share && settings.resamples > 0) {
      const auto [first_alone, second_alone] = samples_that_differ(*of_a, *of_b, k, a.count());
      if (first_alone + second_alone < kFew) {
        interval = difference_interval(first_alone, second_alone, a.count(), settings.level);
        interval = {100 * interval.low, 100 * interval.high};
      }
    }
    if (!(chances[k] < 1 - settings.level)) {  // two networks that are worth the same differ as much by chance
      interval = {std::min(interval.low, 0.0), std::max(interval.high, 0.0)};
    }
    comparison.metrics.push_back(
        {names[k].name, values_a[k], values_b[k], interval, names[k].lower_is_better, chances[k]});
  }
  return comparison;
}

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
