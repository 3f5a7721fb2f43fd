// SPDX-License-Identifier: Apache-2.0
// Metrics of one of several classes, under weights.
#include "statistics/weighted_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "config/task_facts.h"
#include "statistics/thresholds.h"

namespace stoker::statistics {

Agreement agreement_of(const std::vector<ClassSums>& classes) {
  Agreement result;
  double all = 0, hits = 0, present = 0, chance = 0, actual_squares = 0, predicted_squares = 0;
  for (const ClassSums& of : classes) {
    all += of.actual;
    hits += of.hits;
    chance += of.actual * of.predicted;
    actual_squares += of.actual * of.actual;
    predicted_squares += of.predicted * of.predicted;
    if (of.actual == 0) continue;
    ++present;
    result.balanced_accuracy += of.hits / of.actual;
    result.f1_weighted += of.actual * 2 * of.hits / (of.actual + of.predicted);
  }
  if (present > 0) {
    result.balanced_accuracy /= present;
    result.f1_weighted /= all;
  }
  const double spread = (all * all - actual_squares) * (all * all - predicted_squares);
  result.mcc = spread > 0 ? (hits * all - chance) / std::sqrt(spread) : 0;
  const double by_skill = all * all - chance;
  result.kappa = by_skill > 0 ? (hits * all - chance) / by_skill : std::numeric_limits<double>::quiet_NaN();
  return result;
}

namespace {

double ratio_or_zero(double part, double whole) { return whole > 0 ? part / whole : 0; }

class ClassMetrics : public WeightedMetrics {
 public:
  explicit ClassMetrics(const EvaluatedSamples& samples) : samples_(samples) {
    names_ = {{"loss", false, true}, {"top1", true},        {"top5", true}, {"precision"}, {"recall"}, {"f1"},
              {"f1_weighted"},       {"balanced_accuracy"}, {"mcc"},        {"kappa"}};
  }

  void values(const std::vector<uint32_t>& weights, double* values) const override {
    const auto classes = static_cast<size_t>(samples_.columns);
    std::vector<ClassSums> sums(classes);
    double all = 0, loss = 0, top1 = 0, top5 = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      const double weight = weights[i];
      const auto truth = static_cast<size_t>(samples_.truth_class[i]),
                 answer = static_cast<size_t>(samples_.predicted_class[i]);
      all += weight;
      loss += weight * double{samples_.loss[i]};
      top5 += weight * samples_.in_top5[i];
      sums[truth].actual += weight;
      sums[answer].predicted += weight;
      if (truth != answer) continue;
      top1 += weight;
      sums[truth].hits += weight;
    }
    double precision = 0, recall = 0, f1 = 0;
    for (const ClassSums& of : sums) {
      precision += ratio_or_zero(of.hits, of.predicted);
      recall += ratio_or_zero(of.hits, of.actual);
      f1 += ratio_or_zero(2 * of.hits, of.actual + of.predicted);
    }
    const auto n = static_cast<double>(classes);
    values[0] = loss / all;
    values[1] = 100 * top1 / all;
    values[2] = 100 * top5 / all;
    values[3] = precision / n;
    values[4] = recall / n;
    values[5] = f1 / n;
    const Agreement agreement = agreement_of(sums);
    values[6] = agreement.f1_weighted;
    values[7] = agreement.balanced_accuracy;
    values[8] = agreement.mcc;
    values[9] = agreement.kappa;
  }

  bool has_property(size_t metric, size_t sample) const override {
    return metric == 1 ? samples_.truth_class[sample] == samples_.predicted_class[sample]
                       : samples_.in_top5[sample] != 0;
  }

 private:
  const EvaluatedSamples& samples_;
};

}  // namespace

std::unique_ptr<WeightedMetrics> make_class_metrics(const EvaluatedSamples& samples) {
  return std::make_unique<ClassMetrics>(samples);
}

std::unique_ptr<WeightedMetrics> make_weighted_metrics(const EvaluatedSamples& samples) {
  switch (samples.task) {
    case config::TaskKind::multiclass: return make_class_metrics(samples);
    case config::TaskKind::binary:
    case config::TaskKind::multilabel: return make_label_metrics(samples);
    case config::TaskKind::regression:
    case config::TaskKind::head_pose: break;
  }
  return make_number_metrics(samples);
}

// Metrics of yes-or-no labels, one (binary) or several (multilabel), under weights.

namespace {

struct Counts : ClassSums {
  double precision() const { return predicted > 0 ? hits / predicted : 0; }
  double recall() const { return actual > 0 ? hits / actual : 0; }
  double f1() const { return actual + predicted > 0 ? 2 * hits / (actual + predicted) : 0; }
};

class LabelMetrics : public WeightedMetrics {
 public:
  explicit LabelMetrics(const EvaluatedSamples& samples)
      : samples_(samples),
        labels_(static_cast<size_t>(samples.columns)),
        is_binary_(samples.task == config::TaskKind::binary) {
    const MetricName loss = {"loss", false, true};
    if (is_binary_) {
      names_ = {loss,   {"accuracy", true}, {"roc_auc"},           {"pr_auc"}, {"precision"}, {"recall"},
                {"f1"}, {"f1_weighted"},    {"balanced_accuracy"}, {"mcc"},    {"kappa"}};
    } else {
      names_ = {loss,       {"pr_auc"},   {"roc_auc"},     {"f1"},       {"precision"},
                {"recall"}, {"f1_micro"}, {"f1_weighted"}, {"accuracy"}, {"exact_match", true}};
    }
    // As engine/task compares: logits against the logit of the threshold.
    std::vector<float> least;
    for (size_t label = 0; label < labels_; ++label) {
      const double threshold = config::threshold_of(samples.threshold, label);
      least.push_back(static_cast<float>(config::logit_of(threshold)));
    }
    for (size_t i = 0; i < samples.outputs.size(); ++i) {
      predicted_.push_back(samples.outputs[i] >= least[i % labels_] ? 1 : 0);
    }
    for (const float truth : samples.truth) truth_.push_back(truth > 0.5f ? 1 : 0);
    for (size_t label = 0; label < labels_; ++label) {
      ranked_.emplace_back(samples.outputs.data() + label, samples.truth.data() + label, samples.count(),
                           samples.columns);
    }
  }

  void values(const std::vector<uint32_t>& weights, double* values) const override {
    std::vector<Counts> counts(labels_);
    double all = 0, loss = 0, right = 0, exact = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      const double weight = weights[i];
      size_t wrong = 0;
      for (size_t label = 0; label < labels_; ++label) {
        const bool predicted = predicted_[i * labels_ + label] != 0, truth = truth_[i * labels_ + label] != 0;
        counts[label].predicted += predicted ? weight : 0;
        counts[label].actual += truth ? weight : 0;
        counts[label].hits += predicted && truth ? weight : 0;
        wrong += predicted != truth ? 1 : 0;
      }
      all += weight;
      loss += weight * double{samples_.loss[i]};
      right += weight * static_cast<double>(labels_ - wrong);
      exact += wrong == 0 ? weight : 0;
    }
    const double accuracy = 100 * right / (all * static_cast<double>(labels_));
    values[0] = loss / all;
    const Areas areas = mean_areas(weights);
    if (is_binary_) {
      const Counts& of = counts[0];
      const double rest = all - of.actual - of.predicted + of.hits;
      const Agreement agreement = agreement_of({{rest, all - of.actual, all - of.predicted}, of});
      const double of_label[] = {accuracy,      areas.roc_auc,  areas.pr_auc,          of.precision(),
                                 of.recall(),   of.f1(),        agreement.f1_weighted, agreement.balanced_accuracy,
                                 agreement.mcc, agreement.kappa};
      std::copy(std::begin(of_label), std::end(of_label), values + 1);
      return;
    }
    Counts sum;
    double precision = 0, recall = 0, f1 = 0;
    for (const Counts& of : counts) {
      sum.hits += of.hits;
      sum.actual += of.actual;
      sum.predicted += of.predicted;
      precision += of.precision() / static_cast<double>(labels_);
      recall += of.recall() / static_cast<double>(labels_);
      f1 += of.f1() / static_cast<double>(labels_);
    }
    const double weighted = agreement_of({counts.begin(), counts.end()}).f1_weighted;
    const double of_all[] = {areas.pr_auc, areas.roc_auc, f1,       precision,        recall,
                             sum.f1(),     weighted,      accuracy, 100 * exact / all};
    std::copy(std::begin(of_all), std::end(of_all), values + 1);
  }

  bool has_property(size_t /*metric*/, size_t sample) const override {  // accuracy of one label, or exact_match
    const auto begin = static_cast<std::ptrdiff_t>(sample * labels_),
               end = begin + static_cast<std::ptrdiff_t>(labels_);
    return std::equal(predicted_.begin() + begin, predicted_.begin() + end, truth_.begin() + begin);
  }

 private:
  /// Each over the labels for which it is defined; NaN where it is for none.
  Areas mean_areas(const std::vector<uint32_t>& weights) const {
    Areas sum;
    double with_roc = 0, with_pr = 0;
    for (const RankedSamples& ranked : ranked_) {
      const Areas of = ranked.areas(weights);
      const bool has_roc = !std::isnan(of.roc_auc), has_pr = !std::isnan(of.pr_auc);
      sum.roc_auc += has_roc ? of.roc_auc : 0;
      sum.pr_auc += has_pr ? of.pr_auc : 0;
      with_roc += has_roc ? 1 : 0;
      with_pr += has_pr ? 1 : 0;
    }
    return {sum.roc_auc / with_roc, sum.pr_auc / with_pr};  // 0 / 0 is NaN
  }

  const EvaluatedSamples& samples_;
  const size_t labels_;
  const bool is_binary_;
  std::vector<uint8_t> predicted_, truth_;  ///< [n, labels]
  std::vector<RankedSamples> ranked_;       ///< [labels]
};

}  // namespace

std::unique_ptr<WeightedMetrics> make_label_metrics(const EvaluatedSamples& samples) {
  return std::make_unique<LabelMetrics>(samples);
}

// Errors of numbers and of angles, under weights.

namespace {

constexpr double kTurn = 360;  // degrees

class NumberMetrics : public WeightedMetrics {
 public:
  explicit NumberMetrics(const EvaluatedSamples& samples)
      : samples_(samples),
        targets_(static_cast<size_t>(samples.columns)),
        are_angles_(samples.task == config::TaskKind::head_pose) {
    names_ = {{"loss", false, true}, {"mae", false, true}, {"rmse", false, true}};
    if (are_angles_) {
      for (const char* const angle : {"yaw", "pitch", "roll"})
        names_.push_back({std::string("mae_") + angle, false, true});
    } else {
      names_.push_back({"r2"});
    }
    for (size_t i = 0; i < samples.outputs.size(); ++i) {
      double error = double{samples.truth[i]} - double{samples.outputs[i]};
      if (are_angles_) error -= kTurn * std::nearbyint(error / kTurn);
      errors_.push_back(error);
    }
  }

  void values(const std::vector<uint32_t>& weights, double* values) const override {
    std::vector<double> absolute(targets_), squares(targets_), sum(targets_), sum_of_squares(targets_);
    double all = 0, loss = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      const double weight = weights[i];
      all += weight;
      loss += weight * double{samples_.loss[i]};
      for (size_t t = 0; t < targets_; ++t) {
        const double error = errors_[i * targets_ + t];
        // From the first one, so that a mean far from 0 costs no digits.
        const double truth = double{samples_.truth[i * targets_ + t]} - double{samples_.truth[t]};
        absolute[t] += weight * std::abs(error);
        squares[t] += weight * error * error;
        sum[t] += weight * truth;
        sum_of_squares[t] += weight * truth * truth;
      }
    }
    double mae = 0, rmse = 0, r2 = 0;
    const auto n = static_cast<double>(targets_);
    for (size_t t = 0; t < targets_; ++t) {
      mae += absolute[t] / all / n;
      rmse += std::sqrt(squares[t] / all) / n;
      const double spread = sum_of_squares[t] - sum[t] * sum[t] / all;
      const bool constant = spread <= 1e-12 * sum_of_squares[t];
      r2 += (constant ? (squares[t] == 0 ? 1 : 0) : 1 - squares[t] / spread) / n;
    }
    values[0] = loss / all;
    values[1] = mae;
    values[2] = rmse;
    if (!are_angles_) values[3] = r2;
    for (size_t t = 0; are_angles_ && t < targets_; ++t) values[3 + t] = absolute[t] / all;
  }

 private:
  const EvaluatedSamples& samples_;
  const size_t targets_;
  const bool are_angles_;
  std::vector<double> errors_;  ///< [n, targets]
};

}  // namespace

std::unique_ptr<WeightedMetrics> make_number_metrics(const EvaluatedSamples& samples) {
  return std::make_unique<NumberMetrics>(samples);
}

}  // namespace stoker::statistics
