// SPDX-License-Identifier: Apache-2.0
// Facts about each task before anything runs: its name, and which metrics may decide about the best
// checkpoint. The arithmetic: engine/task.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"

namespace stoker::config {

const std::vector<std::pair<std::string, TaskKind>>& task_choices();
std::string task_name(TaskKind task);

/// Whether samples carry numbers (one column per target) instead of a class.
bool is_numeric_task(TaskKind task);
/// Whether targets are real numbers that are scaled for the network.
bool has_scaled_targets(TaskKind task);

/// The threshold of a label: there is one for all, or one each.
inline double threshold_of(const std::vector<double>& thresholds, size_t label) {
  return thresholds.size() == 1 ? thresholds.front() : thresholds.at(label);
}
/// The logit from which on the probability reaches a threshold in (0, 1): its log-odds.
inline double logit_of(double threshold) { return std::log(threshold / (1 - threshold)); }

const std::vector<std::pair<std::string, LossKind>>& loss_choices();
std::string loss_name(LossKind loss);
/// Those that the task can minimise, the default first.
const std::vector<LossKind>& losses_of(TaskKind task);

const std::vector<std::pair<std::string, EvalMetric>>& eval_metric_choices();
std::string eval_metric_name(EvalMetric metric);
bool lower_is_better(EvalMetric metric);
/// The least and the greatest value that it can have; infinite where there is none.
std::pair<double, double> range_of(EvalMetric metric);
/// Those that the task computes, the default first; `loss` is among them.
const std::vector<EvalMetric>& eval_metrics_of(TaskKind task);

}  // namespace stoker::config
