// SPDX-License-Identifier: Apache-2.0
#include "engine/task/worst_samples.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

namespace stoker::engine {
namespace {

/// Probability that the truth lacks, or mean distance from the targets: float32 [B].
torch::Tensor errors_of(const torch::Tensor& predictions, const data::Batch& batch) {
  if (batch.targets.size(1) > 0 && batch.targets.size(1) == predictions.size(1)) {
    return (predictions - batch.targets).abs().mean(1);
  }
  if (predictions.size(1) == 1) return (predictions.select(1, 0) - batch.labels.to(torch::kFloat32)).abs();
  return 1 - predictions.gather(1, batch.labels.clamp_min(0).unsqueeze(1)).squeeze(1);
}

}  // namespace

void WorstSamples::add(const data::Batch& batch, const torch::Tensor& outputs) {
  const torch::NoGradGuard no_grad;
  torch::Tensor predictions = task_.predictions(outputs).to(torch::kFloat32);  // [B, outputs]
  torch::Tensor errors = errors_of(predictions, batch);                        // [B]
  const auto first = static_cast<int64_t>(samples_.size());
  torch::Tensor positions = torch::arange(first, first + errors.size(0), batch.labels.options());
  samples_.insert(samples_.end(), batch.samples.begin(), batch.samples.end());
  if (errors_.defined()) {
    errors = torch::cat({errors_, errors});
    positions = torch::cat({positions_, positions});
    predictions = torch::cat({predictions_, predictions});
  }
  const auto [worst, order] = errors.topk(std::min(count_, errors.size(0)));
  errors_ = worst;
  positions_ = positions.index_select(0, order);
  predictions_ = predictions.index_select(0, order);
}

std::vector<WorstSample> WorstSamples::read() const {
  std::vector<WorstSample> list;
  if (!errors_.defined()) return list;
  const torch::Tensor errors = errors_.cpu().contiguous(), positions = positions_.cpu().contiguous(),
                      predictions = predictions_.cpu().contiguous();
  for (int64_t i = 0; i < errors.size(0); ++i) {
    const double error = errors.data_ptr<float>()[i];
    if (!std::isfinite(error)) continue;
    const float* const output = predictions.data_ptr<float>() + i * predictions.size(1);
    list.push_back({samples_[static_cast<size_t>(positions.data_ptr<int64_t>()[i])],
                    error,
                    {output, output + predictions.size(1)}});
  }
  return list;
}

}  // namespace stoker::engine
