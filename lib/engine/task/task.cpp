// SPDX-License-Identifier: Apache-2.0
#include "engine/task/task.h"

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::engine {

torch::Tensor Task::mixed_loss_sum(const torch::Tensor& outputs, const data::Batch& batch, const data::Batch& partners,
                                   double share, const torch::Tensor& shares) const {
  const torch::Tensor own = training_loss_sum(outputs, batch), other = training_loss_sum(outputs, partners);
  return shares.defined() ? shares[0] * own + shares[1] * other : share * own + (1 - share) * other;
}

std::unique_ptr<Task> make_task(const TaskSpec& spec, torch::Device device) {
  switch (spec.kind) {
    case config::TaskKind::multiclass: return make_multiclass_task(spec, device);
    case config::TaskKind::binary:
    case config::TaskKind::multilabel: return make_label_task(spec, device);
    case config::TaskKind::regression: return make_regression_task(spec, device);
    case config::TaskKind::head_pose: return make_head_pose_task(spec, device);
  }
  throw core::Error(core::ErrorKind::bug, "a task without a factory");
}

void require_prediction_each(const Task& task, config::TaskKind kind, size_t names, const std::string& what) {
  const torch::NoGradGuard no_gradients;
  const int64_t given = task.predictions(torch::zeros({1, task.num_outputs()})).numel();
  const auto wanted = kind == config::TaskKind::binary && names == 2 ? int64_t{1} : static_cast<int64_t>(names);
  if (given == wanted) return;
  throw core::Error(core::ErrorKind::data,
                    core::format("{}: the network makes {} of an image, its record names {}", core::printable(what),
                                 core::counted(given, "prediction"), wanted),
                    "preprocess.json and the weights are of two runs: restore the checkpoint");
}

int64_t table_bytes(config::TaskKind kind, int64_t outputs, int64_t images) {
  constexpr int64_t kRow = 250, kNumber = sizeof(int64_t);  // a row: its names, figures and text
  constexpr int64_t kName = 1'000;                          // a class in lists of names, records and their JSON
  const int64_t rows = (kRow + kName) * outputs;
  if (kind != config::TaskKind::multiclass) return rows;
  constexpr int64_t kCopies = 3;  // the counts, on the host, as a table
  return rows + (outputs <= kMostInMatrix ? kCopies * kNumber * outputs * outputs : kRow * images);
}

Metric metric(config::EvalMetric which, MetricUnit unit, double value) {
  return {config::eval_metric_name(which), unit, value};
}

}  // namespace stoker::engine
