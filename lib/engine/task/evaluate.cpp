// SPDX-License-Identifier: Apache-2.0
#include "engine/task/evaluate.h"

#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/system/stop_signal.h"
#include "engine/memory/activation_arena.h"
#include "engine/task/metrics.h"

namespace stoker::engine {

torch::Tensor infer(model::ImageModel& model, const torch::Tensor& images, const Precision& precision,
                    config::TestTimeAugmentation tta) {
  const ActivationArenaScope arena;
  const torch::NoGradGuard no_gradients;
  const AutocastScope autocast(precision);
  if (tta == config::TestTimeAugmentation::hflip) {
    const torch::Tensor outputs = model.forward(images).to(at::kFloat);
    return (outputs + model.forward(images.flip(-1)).to(at::kFloat)) / 2;
  }
  const int64_t crops = config::crops_of(tta);
  if (crops == 1) return model.forward(images).to(at::kFloat);
  torch::Tensor outputs;
  for (const torch::Tensor& crop : images.chunk(crops, /*dim=*/-2)) {
    const torch::Tensor one = model.forward(crop.contiguous(images.suggest_memory_format())).to(at::kFloat);
    outputs = outputs.defined() ? outputs + one : one;
  }
  return outputs / crops;
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

}  // namespace

torch::Tensor sample_losses(const TaskSpec& spec, const Task& task, const torch::Tensor& outputs,
                            const data::Batch& batch) {
  const torch::NoGradGuard no_gradients;
  if (spec.kind == TaskKind::multiclass) {
    return -outputs.log_softmax(1).gather(1, batch.labels.unsqueeze(1)).squeeze(1).to(torch::kCPU);
  }
  if (!config::has_scaled_targets(spec.kind)) {
    return at::binary_cross_entropy_with_logits(outputs, label_truth(spec.kind, batch), {}, {}, at::Reduction::None)
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
    add_numbers(tempered(outputs, spec_.options.temperature), label_truth(spec_.kind, batch));
  }
}

void GatheredSamples::add_classes(const torch::Tensor& outputs, const torch::Tensor& labels) {
  append(labels.to(at::kInt), samples_.truth_class);
  append(likeliest(outputs).to(at::kInt), samples_.predicted_class);
  for (auto i = samples_.predicted_class.end() - outputs.size(0); i != samples_.predicted_class.end(); ++i) {
    if (*i >= 0 && *i < outputs.size(1)) continue;
    throw core::Error(core::ErrorKind::os,
                      core::format("the device found class {} of {}: it computes wrongly", *i, outputs.size(1)),
                      "train check proves its libraries; --device cpu computes without it");
  }
  const int64_t k = std::min<int64_t>(5, outputs.size(1));
  const torch::Tensor best = std::get<1>(outputs.topk(k, /*dim=*/1));  // as evaluation has it
  append((best == labels.unsqueeze(1)).any(1).to(at::kByte), samples_.in_top5);
  append(tempered(outputs, spec_.options.temperature).softmax(1).amax(1).to(at::kFloat), samples_.confidence);
}

void GatheredSamples::add_numbers(const torch::Tensor& predictions, const torch::Tensor& truth) {
  append(predictions.to(at::kFloat), samples_.outputs);
  append(truth.to(at::kFloat), samples_.truth);
}

namespace {

/// Probability that the truth lacks, or mean distance from the targets: float32 [B].
torch::Tensor errors_of(const torch::Tensor& predictions, const data::Batch& batch) {
  if (batch.targets.size(1) > 0 && batch.targets.size(1) == predictions.size(1)) {
    return (predictions - batch.targets).abs().mean(1);
  }
  if (predictions.size(1) == 1) return (predictions.select(1, 0) - batch.labels.to(torch::kFloat32)).abs();
  return 1 - predictions.gather(1, batch.labels.clamp_min(0).unsqueeze(1)).squeeze(1);
}

/// errors float32 [n], predictions float32 [n, outputs]; `sample_of(i)`: the index of row i in the source, -1: none.
template <typename SampleOf>
std::vector<ShownSample> shown_of(const torch::Tensor& errors, const torch::Tensor& predictions,
                                  const SampleOf& sample_of) {
  std::vector<ShownSample> list;
  const torch::Tensor error = errors.cpu().contiguous(), output = predictions.cpu().contiguous();
  for (int64_t i = 0; i < error.size(0); ++i) {
    if (!std::isfinite(error.data_ptr<float>()[i])) continue;
    const int64_t sample = sample_of(i);
    if (sample < 0) continue;
    const float* const row = output.data_ptr<float>() + i * output.size(1);
    list.push_back({sample, error.data_ptr<float>()[i], {row, row + output.size(1)}});
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
  return shown_of(errors_, predictions_, [&](int64_t i) {
    const auto at = static_cast<size_t>(positions.data_ptr<int64_t>()[i]);
    return at < samples_.size() ? samples_[at] : -1;  // a device that computes wrongly must not crash the host
  });
}

std::vector<ShownSample> WorstSamples::read_ordinary() const {
  if (ordinary_samples_.empty()) return {};
  return shown_of(torch::cat(ordinary_errors_), torch::cat(ordinary_predictions_),
                  [&](int64_t i) { return ordinary_samples_[static_cast<size_t>(i)]; });
}

}  // namespace stoker::engine
