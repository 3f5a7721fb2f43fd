// SPDX-License-Identifier: Apache-2.0
// The metrics of a task where each sample counts several times or not at all, as resampling needs them. With all
// weights 1 they are those of engine/task.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"

namespace stoker::statistics {

// Predictions and targets of each sample of a split, as plain values.

struct EvaluatedSamples {
  config::TaskKind task = config::TaskKind::multiclass;
  int64_t columns = 0;                 ///< classes of multiclass, 1 of binary, else labels or targets
  std::vector<double> threshold{0.5};  ///< binary, multilabel: positive is predicted from this probability on

  std::vector<int64_t> samples;  ///< [n] index in the source
  std::vector<float> loss;       ///< [n]

  // multiclass
  std::vector<int32_t> truth_class, predicted_class;  ///< [n]
  std::vector<uint8_t> in_top5;                       ///< [n] 0 or 1
  std::vector<float> confidence;                      ///< [n] probability of the predicted class

  // the others
  std::vector<float> outputs;  ///< [n, columns] logits of labels, numbers in the unit of the targets; to calibrate all
  std::vector<float> truth;    ///< [n, columns] 0 or 1, or numbers

  int64_t count() const { return static_cast<int64_t>(samples.size()); }
};

// A confusion matrix in one number. Its diagonal and the sums of its rows and columns are enough,
// so that 100,000 classes need no matrix.

/// A class: weights of samples that are both true and predicted, true, predicted.
struct ClassSums {
  double hits = 0, actual = 0, predicted = 0;
};

struct Agreement {
  /// Mean of F1 over classes, weighted by their samples: scikit-learn's f1_score(average="weighted", zero_division=0).
  double f1_weighted = 0;
  /// Mean recall of the classes that have samples: balanced_accuracy_score (Brodersen et al. 2010). 0 without samples.
  double balanced_accuracy = 0;
  /// Matthews' correlation coefficient, of several classes R_K (Gorodkin 2004): matthews_corrcoef. 0 where all samples
  /// are of one class, or predicted so.
  double mcc = 0;
  /// Cohen's kappa (1960): cohen_kappa_score. NaN where chance alone agrees always.
  double kappa = 0;
};

Agreement agreement_of(const std::vector<ClassSums>& classes);

struct MetricName {
  std::string name;       ///< "loss" first, then as the task calls them
  bool is_share = false;  ///< percent of samples with a property that each of them has or lacks
  bool lower_is_better = false;
};

/// Immutable; used from several threads at once.
class WeightedMetrics {
 public:
  virtual ~WeightedMetrics() = default;
  const std::vector<MetricName>& names() const { return names_; }
  /// weights [n], not all 0; values [names]. Undefined ones are NaN.
  virtual void values(const std::vector<uint32_t>& weights, double* values) const = 0;
  /// Whether a sample has the property of which a metric is the share.
  virtual bool has_property(size_t /*metric*/, size_t /*sample*/) const { return false; }

 protected:
  std::vector<MetricName> names_;
};

/// `samples` outlive the result.
std::unique_ptr<WeightedMetrics> make_weighted_metrics(const EvaluatedSamples& samples);

// One per file of tasks.
std::unique_ptr<WeightedMetrics> make_class_metrics(const EvaluatedSamples& samples);   ///< multiclass
std::unique_ptr<WeightedMetrics> make_label_metrics(const EvaluatedSamples& samples);   ///< binary, multilabel
std::unique_ptr<WeightedMetrics> make_number_metrics(const EvaluatedSamples& samples);  ///< regression, head-pose

}  // namespace stoker::statistics
