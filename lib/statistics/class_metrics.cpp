// SPDX-License-Identifier: Apache-2.0
// Metrics of one of several classes, under weights.
#include "statistics/weighted_metrics.h"

namespace stoker::statistics {
namespace {

double ratio_or_zero(double part, double whole) { return whole > 0 ? part / whole : 0; }

class ClassMetrics : public WeightedMetrics {
 public:
  explicit ClassMetrics(const EvaluatedSamples& samples) : samples_(samples) {
    names_ = {{"loss", false, true}, {"top1", true}, {"top5", true}, {"precision"}, {"recall"}, {"f1"}};
  }

  void values(const std::vector<uint32_t>& weights, double* values) const override {
    const auto classes = static_cast<size_t>(samples_.columns);
    std::vector<double> hits(classes), actual(classes), predicted(classes);
    double all = 0, loss = 0, top1 = 0, top5 = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      const double weight = weights[i];
      const auto truth = static_cast<size_t>(samples_.truth_class[i]),
                 answer = static_cast<size_t>(samples_.predicted_class[i]);
      all += weight;
      loss += weight * double{samples_.loss[i]};
      top5 += weight * samples_.in_top5[i];
      actual[truth] += weight;
      predicted[answer] += weight;
      if (truth != answer) continue;
      top1 += weight;
      hits[truth] += weight;
    }
    double precision = 0, recall = 0, f1 = 0;
    for (size_t k = 0; k < classes; ++k) {
      precision += ratio_or_zero(hits[k], predicted[k]);
      recall += ratio_or_zero(hits[k], actual[k]);
      f1 += ratio_or_zero(2 * hits[k], actual[k] + predicted[k]);
    }
    const auto n = static_cast<double>(classes);
    values[0] = loss / all;
    values[1] = 100 * top1 / all;
    values[2] = 100 * top5 / all;
    values[3] = precision / n;
    values[4] = recall / n;
    values[5] = f1 / n;
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

}  // namespace stoker::statistics
