// SPDX-License-Identifier: Apache-2.0
#include "statistics/certainty.h"

#include <algorithm>
#include <cmath>

#include "config/task_facts.h"
#include "core/format.h"
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
  std::vector<double> p_values = difference_p_values(
      a.count(), names.size(),
      [&](const std::vector<uint32_t>& weights, double* figures) { of_both->values(weights, figures); }, settings);
  Comparison comparison;
  comparison.samples = a.count();
  comparison.left_out = first.count() + second.count() - 2 * a.count();
  for (size_t k = 0; k < names.size(); ++k) {
    Interval interval = intervals[k];
    if (names[k].is_share && settings.resamples > 0) {
      const auto [first_alone, second_alone] = samples_that_differ(*of_a, *of_b, k, a.count());
      p_values[k] = sign_test(first_alone, second_alone);
      if (first_alone + second_alone < kFew) {
        interval = difference_interval(first_alone, second_alone, a.count(), settings.level);
        interval = {100 * interval.low, 100 * interval.high};
      }
    }
    if (!(p_values[k] < 1 - settings.level)) {  // two networks that are worth the same differ as much by chance
      interval = {std::min(interval.low, 0.0), std::max(interval.high, 0.0)};
    }
    comparison.metrics.push_back(
        {names[k].name, values_a[k], values_b[k], interval, names[k].lower_is_better, p_values[k]});
  }
  return comparison;
}

namespace {

constexpr int kTrials = 200;
constexpr int64_t kMaxInATrial = 100'000;  // answers; more make no difference to a p-value that is next to 0

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

namespace {

constexpr double kLeastTemperature = 0.05, kMostTemperature = 20;

/// The mean negative log-likelihood of outputs times `inverse`, and its first two derivatives. It is convex in that.
struct Likelihood {
  double loss = 0, slope = 0, curvature = 0;
};

/// For one of several classes.
Likelihood class_likelihood(const float* outputs, size_t classes, size_t truth, double inverse) {
  const double most = *std::max_element(outputs, outputs + classes);
  double sum = 0, mean = 0, square = 0;
  for (size_t k = 0; k < classes; ++k) {
    const double below = double{outputs[k]} - most, weight = std::exp(below * inverse);
    sum += weight;
    mean += weight * below;
    square += weight * below * below;
  }
  mean /= sum;
  const double of_truth = double{outputs[truth]} - most;
  return {std::log(sum) - of_truth * inverse, mean - of_truth, square / sum - mean * mean};
}

/// For a label that is there or not.
Likelihood label_likelihood(double output, bool is_there, double inverse) {
  const double z = output * inverse, probability = 1 / (1 + std::exp(-z));
  const double loss = std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))) - (is_there ? z : 0);
  return {loss, output * (probability - (is_there ? 1 : 0)), output * output * probability * (1 - probability)};
}

Likelihood likelihood_of(const EvaluatedSamples& raw, double inverse) {
  Likelihood mean;
  const auto columns = static_cast<size_t>(raw.columns);
  const bool has_classes = raw.task == config::TaskKind::multiclass;
  const size_t answers = has_classes ? raw.samples.size() : raw.outputs.size();
  for (size_t i = 0; i < answers; ++i) {
    const Likelihood one = has_classes ? class_likelihood(raw.outputs.data() + i * columns, columns,
                                                          static_cast<size_t>(raw.truth_class[i]), inverse)
                                       : label_likelihood(raw.outputs[i], raw.truth[i] > 0.5f, inverse);
    mean.loss += one.loss / static_cast<double>(answers);
    mean.slope += one.slope / static_cast<double>(answers);
    mean.curvature += one.curvature / static_cast<double>(answers);
  }
  return mean;
}

/// Newton's steps towards slope 0, within bounds that close in.
double best_inverse(const EvaluatedSamples& raw) {
  double low = 1 / kMostTemperature, high = 1 / kLeastTemperature, at = 1;
  if (likelihood_of(raw, low).slope >= 0) return low;
  if (likelihood_of(raw, high).slope <= 0) return high;
  for (int step = 0; step < 100 && high - low > 1e-9 * at; ++step) {
    const Likelihood here = likelihood_of(raw, at);
    (here.slope > 0 ? high : low) = at;
    const double next = at - here.slope / here.curvature;
    const bool is_inside = next > low && next < high;  // false for NaN
    if (is_inside && std::abs(next - at) < 1e-10 * at) return next;
    at = is_inside ? next : (low + high) / 2;
  }
  return at;
}

/// The samples as they are with a fit.
EvaluatedSamples with_fit(EvaluatedSamples raw, const ProbabilityFit& fit) {
  for (float& output : raw.outputs) output /= static_cast<float>(fit.temperature);
  raw.threshold = fit.threshold;
  const auto columns = static_cast<size_t>(raw.columns);
  for (size_t i = 0; i < raw.confidence.size(); ++i) {
    const float* const outputs = raw.outputs.data() + i * columns;
    const auto truth = static_cast<size_t>(std::max_element(outputs, outputs + columns) - outputs);
    raw.confidence[i] = static_cast<float>(std::exp(-class_likelihood(outputs, columns, truth, 1).loss));
  }
  return raw;
}

double f1_of(const EvaluatedSamples& samples) {
  const auto metrics = make_weighted_metrics(samples);
  const std::vector<double> values = values_of(*metrics, samples.count());
  for (size_t k = 0; k < values.size(); ++k) {
    if (metrics->names()[k].name == "f1") return values[k];
  }
  return std::nan("");
}

FitCheck::Figures figures_with(const EvaluatedSamples& raw, const ProbabilityFit& fit, uint64_t seed) {
  const EvaluatedSamples samples = with_fit(raw, fit);
  const Calibration calibration = calibration_of(samples, seed);
  return {calibration.ece, calibration.chance_ece, likelihood_of(raw, 1 / fit.temperature).loss,
          has_labels(raw.task) ? f1_of(samples) : std::nan("")};
}

}  // namespace

ProbabilityFit fit_probabilities(const EvaluatedSamples& raw) {
  constexpr double kLeastThreshold = 1e-6;
  ProbabilityFit fit;
  const double found = 1 / best_inverse(raw);
  // Six digits: more than samples justify, and the same on every machine.
  fit.temperature = std::stod(core::format("{:.6g}", found));
  fit.is_lowest = found <= kLeastTemperature;
  fit.is_highest = found >= kMostTemperature;
  fit.threshold = raw.threshold;
  if (!has_labels(raw.task)) return fit;
  const std::vector<LabelThresholds> best = best_thresholds(with_fit(raw, fit));
  fit.threshold.assign(best.size(), 0);
  for (size_t label = 0; label < best.size(); ++label) {
    const double threshold = best[label].f1.threshold;
    fit.threshold[label] = std::isnan(threshold) ? config::threshold_of(raw.threshold, label)
                                                 : std::clamp(threshold, kLeastThreshold, 1 - kLeastThreshold);
  }
  return fit;
}

FitCheck check_fit(const EvaluatedSamples& raw, uint64_t seed) {
  const std::vector<uint32_t> drawn = core::shuffled_indices(static_cast<uint32_t>(raw.count()), seed, /*epoch=*/0);
  const auto half = static_cast<std::ptrdiff_t>(drawn.size() / 2);
  const EvaluatedSamples judged = part_of(raw, {drawn.begin() + half, drawn.end()});
  const EvaluatedSamples fitted = part_of(raw, {drawn.begin(), drawn.begin() + half});
  ProbabilityFit before;
  before.threshold = raw.threshold;
  return {fitted.count(), judged.count(), figures_with(judged, before, seed),
          figures_with(judged, fit_probabilities(fitted), seed)};
}

ProbabilityFit without_worse(const ProbabilityFit& fit, const FitCheck& check, const EvaluatedSamples& raw) {
  ProbabilityFit kept = fit;
  if (check.loss_is_worse()) {
    kept.temperature = 1;
    kept.is_lowest = kept.is_highest = false;
  }
  if (!has_labels(raw.task)) return kept;
  for (size_t label = 0; label < kept.threshold.size(); ++label) {
    const double logit = check.f1_is_worse() ? config::logit_of(config::threshold_of(raw.threshold, label))
                                             : fit.temperature * config::logit_of(fit.threshold[label]);
    kept.threshold[label] = 1 / (1 + std::exp(-logit / kept.temperature));
  }
  return kept;
}

}  // namespace stoker::statistics
