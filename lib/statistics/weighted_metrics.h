// SPDX-License-Identifier: Apache-2.0
// The metrics of a task where each sample counts several times or not at all, as resampling needs them. With all
// weights 1 they are those of engine/task.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "statistics/evaluated_samples.h"

namespace stoker::statistics {

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
