// SPDX-License-Identifier: Apache-2.0
#include "engine/evaluate.h"

#include <c10/core/InferenceMode.h>

#include "core/stop_signal.h"
#include "engine/metrics.h"
#include "model/loss.h"

namespace stoker::engine {

torch::Tensor infer(model::ImageModel& model, const torch::Tensor& images, const Precision& precision) {
  const torch::NoGradGuard no_gradients;
  const AutocastScope autocast(precision);
  return model.forward(images).to(at::kFloat);
}

void predict(model::ImageModel& model, data::DeviceFeed& feed, const Precision& precision,
             const BatchVisitor& visit) {
  model.eval();
  feed.begin_epoch(0);
  for (data::Batch batch; feed.next(batch);) {
    core::throw_if_stopped();
    if (batch.image_count() > 0) visit(batch, infer(model, batch.images, precision));
  }
}

EvalReport evaluate(model::ImageModel& model, data::DeviceFeed& feed, const Precision& precision,
                    const BatchVisitor& visit) {
  ClassificationMetrics metrics(precision.device, /*with_top5=*/true);
  predict(model, feed, precision, [&](const data::Batch& batch, const torch::Tensor& logits) {
    metrics.add(model::cross_entropy_sum(logits, batch.labels, /*label_smoothing=*/0), logits, batch.labels);
    if (visit) visit(batch, logits);
  });
  const MetricValues sums = metrics.read();
  const double images = static_cast<double>(std::max<int64_t>(1, sums.images));
  return {sums.images, sums.loss_sum / images, 100 * sums.top1_count / images, 100 * sums.top5_count / images};
}

}  // namespace stoker::engine
