// SPDX-License-Identifier: Apache-2.0
#include "engine/task/gather_samples.h"

#include <algorithm>

#include "config/task_facts.h"
#include "engine/task/likeliest.h"

namespace stoker::engine {
namespace {

using config::TaskKind;

template <typename T>
void append(const torch::Tensor& tensor, std::vector<T>& values) {
  const torch::Tensor host = tensor.to(torch::kCPU).contiguous();
  const T* const begin = host.data_ptr<T>();
  values.insert(values.end(), begin, begin + host.numel());
}

/// Row `i` of a batch, as far as a loss looks at it.
data::Batch row_of(const data::Batch& batch, int64_t i) {
  data::Batch row;
  row.labels = batch.labels.narrow(0, i, 1);
  row.targets = batch.targets.narrow(0, i, 1);
  return row;
}

/// 0 and 1 as float32 [B, labels].
torch::Tensor truth_of(TaskKind kind, const data::Batch& batch) {
  return kind == TaskKind::binary ? batch.labels.to(at::kFloat).unsqueeze(1) : batch.targets;
}

}  // namespace

torch::Tensor sample_losses(const TaskSpec& spec, const Task& task, const torch::Tensor& outputs,
                            const data::Batch& batch) {
  const torch::NoGradGuard no_gradients;
  if (spec.kind == TaskKind::multiclass) {
    return -outputs.log_softmax(1).gather(1, batch.labels.unsqueeze(1)).squeeze(1).to(torch::kCPU);
  }
  if (!config::has_scaled_targets(spec.kind)) {
    return at::binary_cross_entropy_with_logits(outputs, truth_of(spec.kind, batch), {}, {}, at::Reduction::None)
        .mean(1)
        .to(torch::kCPU);
  }
  std::vector<torch::Tensor> losses;
  for (int64_t i = 0; i < outputs.size(0); ++i) {
    losses.push_back(task.eval_loss_sum(outputs.narrow(0, i, 1), row_of(batch, i)).to(at::kFloat));
  }
  return torch::stack(losses).to(torch::kCPU);
}

GatheredSamples::GatheredSamples(const TaskSpec& spec, const Task& task) : spec_(spec), task_(task) {
  samples_.task = spec.kind;
  samples_.columns = spec.kind == TaskKind::binary ? 1 : spec.num_classes;
  samples_.threshold = spec.options.threshold;
}

void GatheredSamples::add(const torch::Tensor& outputs, const data::Batch& batch) {
  const torch::NoGradGuard no_gradients;
  samples_.samples.insert(samples_.samples.end(), batch.samples.begin(), batch.samples.end());
  append(sample_losses(spec_, task_, outputs, batch), samples_.loss);
  if (spec_.kind == TaskKind::multiclass) {
    add_classes(outputs, batch.labels);
  } else if (config::has_scaled_targets(spec_.kind)) {
    add_numbers(task_.predictions(outputs), batch.targets);
  } else {
    add_numbers(outputs, truth_of(spec_.kind, batch));
  }
}

void GatheredSamples::add_classes(const torch::Tensor& outputs, const torch::Tensor& labels) {
  append(labels.to(at::kInt), samples_.truth_class);
  append(likeliest(outputs).to(at::kInt), samples_.predicted_class);
  const int64_t k = std::min<int64_t>(5, outputs.size(1));
  const torch::Tensor best = std::get<1>(outputs.topk(k, /*dim=*/1));  // as evaluation has it
  append((best == labels.unsqueeze(1)).any(1).to(at::kByte), samples_.in_top5);
  append(outputs.softmax(1).amax(1).to(at::kFloat), samples_.confidence);
}

void GatheredSamples::add_numbers(const torch::Tensor& predictions, const torch::Tensor& truth) {
  append(predictions.to(at::kFloat), samples_.outputs);
  append(truth.to(at::kFloat), samples_.truth);
}

}  // namespace stoker::engine
