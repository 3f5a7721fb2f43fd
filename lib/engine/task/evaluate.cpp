// SPDX-License-Identifier: Apache-2.0
#include "engine/task/evaluate.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "core/error.h"
#include "core/system/stop_signal.h"
#include "engine/memory/activation_arena.h"
#include "engine/task/metrics.h"

namespace stoker::engine {

torch::Tensor infer(model::ImageModel& model, const torch::Tensor& images, const Precision& precision,
                    config::TestTimeAugmentation tta) {
  const ActivationArenaScope arena;
  const torch::NoGradGuard no_gradients;
  const AutocastScope autocast(precision);
  const torch::Tensor outputs = model.forward(images).to(at::kFloat);
  if (tta == config::TestTimeAugmentation::none) return outputs;
  return (outputs + model.forward(images.flip(-1)).to(at::kFloat)) / 2;
}

void predict(model::ImageModel& model, data::DeviceFeed& feed, const Precision& precision,
             config::TestTimeAugmentation tta, const BatchVisitor& visit) {
  model.eval();
  feed.begin_epoch(0);
  for (data::Batch batch; feed.next(batch);) {
    core::throw_if_stopped();
    if (batch.image_count() > 0) visit(batch, infer(model, batch.images, precision, tta));
  }
}

double EvalReport::value_of(config::EvalMetric which) const {
  if (which == config::EvalMetric::loss) return loss;
  const std::string name = metric(which, MetricUnit::number).name;
  for (const Metric& entry : metrics) {
    if (entry.name == name) return entry.value;
  }
  throw core::Error(core::ErrorKind::bug, "the task does not compute the metric " + name);
}

EvalReport evaluate(model::ImageModel& model, const Task& task, data::DeviceFeed& feed, const Precision& precision,
                    config::TestTimeAugmentation tta, const BatchVisitor& visit,
                    const std::vector<std::string>& table_names) {
  const auto predict_all = [&](const BatchVisitor& add) { predict(model, feed, precision, tta, add); };
  return evaluate_outputs(task, precision.device, predict_all, visit, table_names);
}

EvalReport evaluate_outputs(const Task& task, torch::Device device,
                            const std::function<void(const BatchVisitor&)>& predict_all, const BatchVisitor& visit,
                            const std::vector<std::string>& table_names) {
  RunningSums loss(device);
  const std::unique_ptr<EvalMetrics> metrics = task.make_metrics(/*with_tables=*/!table_names.empty());
  predict_all([&](const data::Batch& batch, const torch::Tensor& outputs) {
    loss.add(task.eval_loss_sum(outputs, batch), /*score_sum=*/{}, batch.image_count());
    metrics->add(outputs, batch);
    if (visit) visit(batch, outputs);
  });
  const SumValues sums = loss.read();
  EvalReport report;
  report.images = sums.images;
  report.loss = sums.loss_sum / static_cast<double>(std::max<int64_t>(1, sums.images));
  report.metrics = metrics->read();
  if (!table_names.empty()) report.tables = metrics->tables(table_names);
  return report;
}

}  // namespace stoker::engine
