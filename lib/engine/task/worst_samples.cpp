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

/// errors float32 [n], predictions float32 [n, outputs]; `sample_of(i)`: the index of row i in the source.
template <typename SampleOf>
std::vector<ShownSample> shown_of(const torch::Tensor& errors, const torch::Tensor& predictions,
                                  const SampleOf& sample_of) {
  std::vector<ShownSample> list;
  const torch::Tensor error = errors.cpu().contiguous(), output = predictions.cpu().contiguous();
  for (int64_t i = 0; i < error.size(0); ++i) {
    if (!std::isfinite(error.data_ptr<float>()[i])) continue;
    const float* const row = output.data_ptr<float>() + i * output.size(1);
    list.push_back({sample_of(i), error.data_ptr<float>()[i], {row, row + output.size(1)}});
  }
  return list;
}

}  // namespace

void WorstSamples::add(const data::Batch& batch, const torch::Tensor& outputs) {
  const torch::NoGradGuard no_grad;
  torch::Tensor predictions = task_.predictions(outputs).to(torch::kFloat32);  // [B, outputs]
  torch::Tensor errors = errors_of(predictions, batch);                        // [B]
  const auto first = static_cast<int64_t>(samples_.size());
  torch::Tensor positions = torch::arange(first, first + errors.size(0), batch.labels.options());
  samples_.insert(samples_.end(), batch.samples.begin(), batch.samples.end());
  for (int64_t i = 0; i < errors.size(0) && ordinary_samples_.size() < kOrdinary; ++i) {
    if ((first + i) % step_ != step_ / 2) continue;
    ordinary_samples_.push_back(batch.samples[static_cast<size_t>(i)]);
    ordinary_errors_.push_back(errors.narrow(0, i, 1).clone());
    ordinary_predictions_.push_back(predictions.narrow(0, i, 1).clone());
  }
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

std::vector<ShownSample> WorstSamples::read() const {
  if (!errors_.defined()) return {};
  const torch::Tensor positions = positions_.cpu().contiguous();
  return shown_of(errors_, predictions_,
                  [&](int64_t i) { return samples_[static_cast<size_t>(positions.data_ptr<int64_t>()[i])]; });
}

std::vector<ShownSample> WorstSamples::read_ordinary() const {
  if (ordinary_samples_.empty()) return {};
  return shown_of(torch::cat(ordinary_errors_), torch::cat(ordinary_predictions_),
                  [&](int64_t i) { return ordinary_samples_[static_cast<size_t>(i)]; });
}

}  // namespace stoker::engine
