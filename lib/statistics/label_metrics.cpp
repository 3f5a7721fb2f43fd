// SPDX-License-Identifier: Apache-2.0
// Metrics of yes-or-no labels, one (binary) or several (multilabel), under weights.
#include <algorithm>
#include <cmath>
#include <limits>

#include "statistics/ranking.h"
#include "statistics/weighted_metrics.h"

namespace stoker::statistics {
namespace {

struct Counts {
  double hits = 0, actual = 0, predicted = 0;
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
      names_ = {loss, {"accuracy", true}, {"roc_auc"}, {"pr_auc"}, {"precision"}, {"recall"}, {"f1"}};
    } else {
      names_ = {loss,         {"pr_auc"},   {"roc_auc"},          {"f1"}, {"precision"}, {"recall"},
                {"f1_micro"}, {"accuracy"}, {"exact_match", true}};
    }
    // As engine/task compares: logits against the logit of the threshold.
    const auto least = static_cast<float>(std::log(samples.threshold / (1 - samples.threshold)));
    for (const float logit : samples.outputs) predicted_.push_back(logit >= least ? 1 : 0);
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
      const double of_label[] = {accuracy,           areas.roc_auc, areas.pr_auc, counts[0].precision(),
                                 counts[0].recall(), counts[0].f1()};
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
    const double of_all[] = {areas.pr_auc, areas.roc_auc, f1, precision, recall, sum.f1(), accuracy, 100 * exact / all};
    std::copy(std::begin(of_all), std::end(of_all), values + 1);
  }

  bool has_property(size_t /*metric*/, size_t sample) const override {  // accuracy of one label, or exact_match
    const auto begin = static_cast<std::ptrdiff_t>(sample * labels_),
               end = begin + static_cast<std::ptrdiff_t>(labels_);
    return std::equal(predicted_.begin() + begin, predicted_.begin() + end, truth_.begin() + begin);
  }

 private:
  /// ROC over labels that have positives and negatives, the other over all.
  Areas mean_areas(const std::vector<uint32_t>& weights) const {
    Areas mean;
    double defined = 0;
    for (const RankedSamples& ranked : ranked_) {
      const Areas of = ranked.areas(weights);
      mean.pr_auc += of.pr_auc / static_cast<double>(labels_);
      if (std::isnan(of.roc_auc)) continue;
      mean.roc_auc += of.roc_auc;
      ++defined;
    }
    mean.roc_auc = defined > 0 ? mean.roc_auc / defined : std::numeric_limits<double>::quiet_NaN();
    return mean;
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

}  // namespace stoker::statistics
