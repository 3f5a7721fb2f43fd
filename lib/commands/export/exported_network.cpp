// SPDX-License-Identifier: Apache-2.0
#include "commands/export/exported_network.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include "config/task_facts.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::train {
namespace {

constexpr double kLargestByte = 255;

torch::Tensor per_channel(const std::vector<double>& values) {
  return torch::tensor(values, at::kDouble).reshape({-1, 1, 1});
}

/// [..., C, H, W] -> [..., H, W, C].
torch::Tensor channels_to_back(const torch::Tensor& x) {
  return x.dim() == 4 ? x.permute({0, 2, 3, 1}) : x.permute({0, 1, 3, 4, 2});
}
torch::Tensor channels_to_front(const torch::Tensor& x) {
  return x.dim() == 4 ? x.permute({0, 3, 1, 2}) : x.permute({0, 1, 4, 2, 3});
}

}  // namespace

ExportedNetwork::ExportedNetwork(std::shared_ptr<model::ImageModel> model, std::shared_ptr<engine::Task> task,
                                 config::Preprocessing record, ExportBoundary boundary)
    : model_(std::move(model)),
      task_(std::move(task)),
      record_(std::move(record)),
      boundary_(boundary),
      mean_(per_channel(record_.mean)),
      deviation_(per_channel(record_.std)),
      scale_((1 / (deviation_ * kLargestByte)).to(at::kFloat).unsqueeze(0)),
      offset_((-mean_ / deviation_).to(at::kFloat).unsqueeze(0)) {
  if (boundary.bytes_in && record_.element != "uint8") {
    throw core::Error(core::ErrorKind::config,
                      core::format("--with-preprocessing: samples of this run are {}, not bytes", record_.element),
                      "export without it: the input is then the normalised sample");
  }
  if (boundary.bytes_in && record_.views > 1) {
    throw core::Error(core::ErrorKind::config,
                      "--with-preprocessing: samples of this run are frames in high and low quality, not single images",
                      "export without it: the input is then [batch, frames, 2 * channels, height, width]");
  }
}

std::string ExportedNetwork::output_name() const {
  const bool has_classes = !config::is_numeric_task(record_.task);
  if (boundary_.predictions_out) return has_classes ? "probabilities" : "predictions";
  return has_classes ? "logits" : "outputs";
}

std::string ExportedNetwork::input_description() const {
  const char* const order = record_.channels == 3 ? " in the order red, green, blue" : "";
  const char* const clips = record_.views > 1
                                ? "clips of frames in high quality with those in low quality behind them, "
                            : record_.frames > 0 ? "clips, "
                                                 : "";
  if (boundary_.bytes_in) return core::format("{}bytes [batch, ..., height, width, channels]{}", clips, order);
  return core::format("{}normalised as in preprocess, [batch, ..., channels, height, width]{}", clips, order);
}

std::string ExportedNetwork::output_description() const {
  if (!boundary_.predictions_out) return "raw outputs, in the order of the names";
  return config::is_numeric_task(record_.task) ? "numbers in the unit of the targets"
                                               : "probabilities, in the order of class_names";
}

torch::Tensor ExportedNetwork::with_predictions(const torch::Tensor& outputs) const {
  return boundary_.predictions_out ? task_->predictions(outputs) : outputs;
}

torch::Tensor ExportedNetwork::forward(const torch::Tensor& input) const {
  const torch::Tensor images = boundary_.bytes_in ? channels_to_front(input.to(at::kFloat)) * scale_ + offset_ : input;
  return with_predictions(model_->forward(images));
}

torch::Tensor ExportedNetwork::input_of(const torch::Tensor& normalised) const {
  if (!boundary_.bytes_in) return normalised.contiguous();
  const torch::Tensor bytes = ((normalised.to(at::kDouble) * deviation_ + mean_) * kLargestByte).round();
  return channels_to_back(bytes.clamp(0, kLargestByte).to(at::kByte)).contiguous();
}

torch::Tensor ExportedNetwork::expected(const torch::Tensor& normalised) const {
  const torch::NoGradGuard no_gradients;
  constexpr int64_t kAtOnce = 8;
  std::vector<torch::Tensor> outputs;
  for (const torch::Tensor& some : normalised.split(kAtOnce)) {
    outputs.push_back(with_predictions(model_->forward(some.contiguous())));
  }
  return at::cat(outputs);
}

torch::Tensor ExportedNetwork::predictions_of(const torch::Tensor& output) const {
  return boundary_.predictions_out ? output : task_->predictions(output);
}

torch::Tensor ExportedNetwork::made_up(int64_t count) const {
  at::Generator random = at::detail::createCPUGenerator(/*seed=*/1);
  std::vector<int64_t> shape = {count};
  if (record_.views > 1) {  // numbers as normalised ones are; bytes are refused
    shape.insert(shape.end(), {std::max<int64_t>(1, record_.frames), record_.views * record_.channels, record_.height,
                               record_.width});
    return at::randn(shape, random, at::kFloat);
  }
  if (record_.frames > 0) shape.push_back(record_.frames);
  shape.insert(shape.end(), {record_.channels, record_.height, record_.width});
  if (record_.element != "uint8") return at::randn(shape, random, at::kFloat);
  const torch::Tensor bytes = at::randint(0, 256, shape, random, at::kDouble);
  return ((bytes / kLargestByte - mean_) / deviation_).to(at::kFloat);
}

}  // namespace stoker::train
