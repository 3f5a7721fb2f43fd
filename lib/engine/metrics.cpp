// SPDX-License-Identifier: Apache-2.0
#include "engine/metrics.h"

#include <algorithm>

namespace stoker::engine {

ClassificationMetrics::ClassificationMetrics(torch::Device device, bool with_top5)
    : device_(device), with_top5_(with_top5) {
  reset();
}

void ClassificationMetrics::restore(const MetricValues& values) {
  sums_ = torch::tensor({values.loss_sum, values.top1_count, values.top5_count}, at::kDouble).to(device_);
  images_ = values.images;
}

void ClassificationMetrics::add(const torch::Tensor& loss_sum, const torch::Tensor& logits,
                                const torch::Tensor& labels) {
  const torch::NoGradGuard no_gradients;
  sums_[0].add_(loss_sum.detach());
  sums_[1].add_((logits.argmax(1) == labels).sum());
  if (with_top5_) {
    const int64_t k = std::min<int64_t>(5, logits.size(1));
    const torch::Tensor best = std::get<1>(logits.topk(k, /*dim=*/1));
    sums_[2].add_((best == labels.unsqueeze(1)).sum());
  }
  images_ += labels.size(0);
}

MetricValues ClassificationMetrics::read() const {
  const torch::Tensor host = sums_.to(torch::kCPU);
  const double* const values = host.data_ptr<double>();
  return {values[0], values[1], values[2], images_};
}

}  // namespace stoker::engine
