// SPDX-License-Identifier: Apache-2.0
#include "config/task_facts.h"

#include <limits>

namespace stoker::config {
namespace {

template <typename T>
std::string name_in(const std::vector<std::pair<std::string, T>>& choices, T value) {
  for (const auto& [name, meaning] : choices) {
    if (meaning == value) return name;
  }
  return "";
}

}  // namespace

const std::vector<std::pair<std::string, TaskKind>>& task_choices() {
  static const auto choices = words_in_order<TaskKind>("multiclass binary multilabel regression head-pose");
  return choices;
}

std::string task_name(TaskKind task) { return name_in(task_choices(), task); }

bool is_numeric_task(TaskKind task) { return task == TaskKind::multilabel || has_scaled_targets(task); }

bool has_scaled_targets(TaskKind task) { return task == TaskKind::regression || task == TaskKind::head_pose; }

const std::vector<std::pair<std::string, LossKind>>& loss_choices() {
  static const auto choices = words_in_order<LossKind>("l1 l2 smooth-l1 huber cross-entropy bce focal asymmetric");
  return choices;
}

std::string loss_name(LossKind loss) { return name_in(loss_choices(), loss); }

const std::vector<LossKind>& losses_of(TaskKind task) {
  using L = LossKind;
  static const std::vector<L> multiclass = {L::cross_entropy, L::bce, L::focal};
  static const std::vector<L> labels = {L::bce, L::focal, L::asymmetric};
  static const std::vector<L> numbers = {L::smooth_l1, L::l1, L::l2, L::huber};
  return has_scaled_targets(task) ? numbers : task == TaskKind::multiclass ? multiclass : labels;
}

const std::vector<std::pair<std::string, EvalMetric>>& eval_metric_choices() {
  static const auto choices = words_in_order<EvalMetric>(
      "loss top1 top5 accuracy exact_match precision recall f1 f1_micro f1_weighted balanced_accuracy mcc "
      "kappa roc_auc pr_auc mae rmse r2");
  return choices;
}

std::string eval_metric_name(EvalMetric metric) { return name_in(eval_metric_choices(), metric); }

bool lower_is_better(EvalMetric metric) {
  return metric == EvalMetric::loss || metric == EvalMetric::mae || metric == EvalMetric::rmse;
}

std::pair<double, double> range_of(EvalMetric metric) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (lower_is_better(metric)) return {0, kInfinity};
  switch (metric) {
    case EvalMetric::top1:
    case EvalMetric::top5:
    case EvalMetric::accuracy:
    case EvalMetric::exact_match: return {0, 100};
    case EvalMetric::mcc:
    case EvalMetric::kappa: return {-1, 1};
    case EvalMetric::r2: return {-kInfinity, 1};
    default: return {0, 1};
  }
}

const std::vector<EvalMetric>& eval_metrics_of(TaskKind task) {
  using M = EvalMetric;
  static const std::vector<M> multiclass = {M::top1,  M::top5,        M::precision,         M::recall,
                                            M::f1,    M::f1_weighted, M::balanced_accuracy, M::mcc,
                                            M::kappa, M::loss};
  static const std::vector<M> binary = {M::accuracy,    M::roc_auc,           M::pr_auc, M::precision, M::recall, M::f1,
                                        M::f1_weighted, M::balanced_accuracy, M::mcc,    M::kappa,     M::loss};
  static const std::vector<M> multilabel = {M::pr_auc,   M::roc_auc,     M::f1,       M::precision,   M::recall,
                                            M::f1_micro, M::f1_weighted, M::accuracy, M::exact_match, M::loss};
  static const std::vector<M> regression = {M::mae, M::rmse, M::r2, M::loss};
  static const std::vector<M> head_pose = {M::mae, M::rmse, M::loss};
  switch (task) {
    case TaskKind::binary: return binary;
    case TaskKind::multilabel: return multilabel;
    case TaskKind::regression: return regression;
    case TaskKind::head_pose: return head_pose;
    case TaskKind::multiclass: break;
  }
  return multiclass;
}

}  // namespace stoker::config
