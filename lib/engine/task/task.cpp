// SPDX-License-Identifier: Apache-2.0
#include "engine/task/task.h"

#include "config/task_facts.h"
#include "core/error.h"

namespace stoker::engine {

std::unique_ptr<Task> make_task(const TaskSpec& spec, torch::Device device) {
  switch (spec.kind) {
    case config::TaskKind::multiclass: return make_multiclass_task(spec, device);
    case config::TaskKind::binary: return make_binary_task(spec, device);
    case config::TaskKind::multilabel: return make_multilabel_task(spec, device);
    case config::TaskKind::regression: return make_regression_task(spec, device);
    case config::TaskKind::head_pose: return make_head_pose_task(spec, device);
  }
  throw core::Error(core::ErrorKind::bug, "a task without a factory");
}

Metric metric(config::EvalMetric which, MetricUnit unit, double value) {
  return {config::eval_metric_name(which), unit, value};
}

bool lower_is_better(config::EvalMetric which) {
  return which == config::EvalMetric::loss || which == config::EvalMetric::mae || which == config::EvalMetric::rmse;
}

}  // namespace stoker::engine
