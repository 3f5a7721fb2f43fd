// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/update_record.h"

#include <ATen/Functions.h>

#include <cmath>
#include <limits>
#include <utility>

#include "engine/digest/tensor_digest.h"

namespace stoker::train {
namespace {

data::Batch row_of(const data::Batch& batch, int64_t row) {
  data::Batch one;
  one.labels = batch.labels.slice(0, row, row + 1);
  if (batch.targets.defined()) one.targets = batch.targets.slice(0, row, row + 1);
  one.planned_images = 1;
  return one;
}

/// What each row costs, as the sum over the batch counts it.
std::vector<double> losses_of(const engine::Task& task, const engine::SeenBatch& seen) {
  const at::NoGradGuard no_gradients;
  const torch::Tensor outputs = seen.outputs.detach().to(torch::kFloat32);
  const bool is_mixed = seen.mix.lambda < 1;
  const data::Batch partners = is_mixed ? engine::with_partners_targets(seen.batch) : data::Batch();
  std::vector<torch::Tensor> losses;
  for (int64_t row = 0; row < outputs.size(0); ++row) {
    const torch::Tensor output = outputs.slice(0, row, row + 1);
    torch::Tensor loss = task.training_loss_sum(output, row_of(seen.batch, row));
    if (is_mixed) {
      loss = seen.mix.lambda * loss + (1 - seen.mix.lambda) * task.training_loss_sum(output, row_of(partners, row));
    }
    losses.push_back(loss.to(torch::kFloat64).reshape({}));
  }
  if (losses.empty()) return {};
  const torch::Tensor all = at::stack(losses).to(torch::kCPU);
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

}  // namespace

void UpdateRecorder::saw_batch(const engine::SeenBatch& seen) {
  BatchRecord record;
  record.mix = seen.mix;
  const torch::Tensor images = seen.images.detach().to(torch::kCPU);
  const torch::Tensor labels = seen.batch.labels.to(torch::kCPU).contiguous();
  const torch::Tensor targets =
      seen.batch.targets.defined() ? seen.batch.targets.to(torch::kCPU, torch::kFloat32).contiguous() : torch::Tensor();
  const std::vector<double> losses = losses_of(task_, seen);
  const int64_t rows = images.size(0);
  const torch::Tensor finite = at::isfinite(images).flatten(1).all(1);
  const torch::Tensor largest = images.flatten(1).abs().amax(1);
  for (int64_t row = 0; row < rows; ++row) {
    const auto i = static_cast<size_t>(row);
    SampleRecord sample;
    sample.sample = seen.batch.samples.at(i);
    sample.label = labels.data_ptr<int64_t>()[row];
    if (targets.defined() && targets.dim() == 2) {
      const float* const begin = targets.data_ptr<float>() + row * targets.size(1);
      sample.targets.assign(begin, begin + targets.size(1));
    }
    if (seen.mix.lambda < 1)
      sample.mixed_with = seen.batch.samples.at(static_cast<size_t>(row == 0 ? rows - 1 : row - 1));
    sample.loss = losses.at(i);
    sample.is_finite = finite[row].item<bool>();
    sample.largest = largest[row].item<double>();
    sample.image = engine::tensor_digest(images[row]);
    record.samples.push_back(std::move(sample));
  }
  if (keeps_images_) record.images = images.clone(at::MemoryFormat::Contiguous);
  batches_[seen.batch_in_window] = std::move(record);
}

void UpdateRecorder::saw_gradients(const engine::Learner& learner) {
  const at::NoGradGuard no_gradients;
  const double scale = learner.scaler->enabled() ? learner.scaler->scale().item<double>() : 1;
  gradients_.clear();
  for (const optim::NamedParameter& parameter : learner.optimizer->parameters()) {
    const torch::Tensor gradient = parameter.tensor.grad();
    if (!gradient.defined()) continue;
    gradients_.push_back({parameter.name, gradient.to(torch::kFloat32).norm().item<double>() / scale});
  }
}

std::vector<SampleRecord> UpdateRecorder::samples() const {
  std::vector<SampleRecord> all;
  for (const auto& [number, batch] : batches_) all.insert(all.end(), batch.samples.begin(), batch.samples.end());
  return all;
}

double UpdateRecorder::mean_loss() const {
  double sum = 0;
  int64_t count = 0;
  for (const auto& [number, batch] : batches_) {
    for (const SampleRecord& sample : batch.samples) sum += sample.loss;
    count += static_cast<int64_t>(batch.samples.size());
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

double UpdateRecorder::gradient_norm() const {
  double squares = 0;
  for (const GradientRecord& gradient : gradients_) squares += gradient.norm * gradient.norm;
  return std::sqrt(squares);
}

std::vector<GradientRecord> by_layer(const std::vector<GradientRecord>& gradients) {
  std::vector<GradientRecord> layers;
  for (const GradientRecord& gradient : gradients) {
    const size_t dot = gradient.name.rfind('.');
    const std::string layer = dot == std::string::npos ? gradient.name : gradient.name.substr(0, dot);
    if (layers.empty() || layers.back().name != layer) layers.push_back({layer, 0});
    layers.back().norm = std::hypot(layers.back().norm, gradient.norm);
  }
  return layers;
}

}  // namespace stoker::train
