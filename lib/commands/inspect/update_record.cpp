// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/update_record.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/format.h"
#include "core/system/file.h"
#include "data/image/contact_sheet.h"
#include "engine/digest/tensor_digest.h"
#include "engine/saved/safetensors.h"

namespace stoker::train {
namespace {

data::Batch row_of(const data::Batch& batch, int64_t row) {
  data::Batch one;
  one.labels = batch.labels.slice(0, row, row + 1);
  if (batch.targets.defined()) one.targets = batch.targets.slice(0, row, row + 1);
  one.planned_images = 1;
  return one;
}

/// The loss of each row, as the sum over the batch counts it.
std::vector<double> losses_of(const engine::Task& task, const engine::SeenBatch& seen) {
  const at::NoGradGuard no_gradients;
  const torch::Tensor outputs = seen.outputs.detach().to(torch::kFloat32);
  const bool is_mixed = seen.mix.lambda < 1;
  const data::Batch partners = is_mixed ? engine::with_partners_targets(seen.batch) : data::Batch();
  std::vector<torch::Tensor> losses;
  for (int64_t row = 0; row < outputs.size(0); ++row) {
    const torch::Tensor output = outputs.slice(0, row, row + 1);
    const data::Batch own = row_of(seen.batch, row);
    const torch::Tensor loss =
        is_mixed ? task.mixed_loss_sum(output, own, row_of(partners, row), seen.mix.lambda, /*shares=*/{})
                 : task.training_loss_sum(output, own);
    losses.push_back(loss.to(torch::kFloat64).reshape({}));
  }
  if (losses.empty()) return {};
  const torch::Tensor all = at::stack(losses).to(torch::kCPU);
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

}  // namespace

void UpdateRecorder::on_batch(const engine::SeenBatch& seen) {
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

void UpdateRecorder::on_gradients(const engine::Learner& learner) {
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

namespace {

using core::format;
using core::Json;

constexpr int64_t kColumns = 8;

/// [C, H, W] as the network got it, to bytes [H, W, C].
torch::Tensor bytes_of(const torch::Tensor& image, bool is_picture, const config::ResolvedDataOptions& options) {
  torch::Tensor unit = image;
  if (is_picture) {
    const auto per_channel = [](const std::vector<double>& values) {
      return torch::tensor(values, torch::kFloat32).view({-1, 1, 1});  // [C, 1, 1]
    };
    unit = image * per_channel(options.std) + per_channel(options.mean);
  } else {
    const torch::Tensor low = image.min(), range = image.max() - low;
    unit = (image - low) / range.clamp_min(1e-12);
  }
  return (at::nan_to_num(unit) * 255).round().clamp(0, 255).to(torch::kUInt8).permute({1, 2, 0}).contiguous();
}

std::vector<uint8_t> plain(const torch::Tensor& bytes) {
  return {bytes.data_ptr<uint8_t>(), bytes.data_ptr<uint8_t>() + bytes.numel()};
}

void write_plain(const std::string& path, const std::string& content) {
  core::write_file_atomically(path, content, /*durable=*/false);
}

Json sample_json(const SampleRecord& sample, const data::Source& source, int64_t place) {
  Json json = {{"image", format("{:04}.png", place)},
               {"sample", sample.sample},
               {"name", core::printable(source.relative_name(sample.sample))},
               {"label", sample.label},
               {"truth", truth_text(sample, source)},
               {"loss", sample.loss},
               {"digest", sample.image}};
  if (!sample.targets.empty()) json["targets"] = sample.targets;
  if (sample.mixed_with >= 0) json["mixed_with"] = core::printable(source.relative_name(sample.mixed_with));
  return json;
}

}  // namespace

std::string truth_text(const SampleRecord& sample, const data::Source& source) {
  const std::vector<std::string>& names = source.class_names();
  if (sample.label >= 0 && sample.label < static_cast<int64_t>(names.size())) {
    return core::printable(names[static_cast<size_t>(sample.label)]);
  }
  std::string text;
  for (const float target : sample.targets) text += (text.empty() ? "" : " ") + format("{:g}", target);
  return text.empty() ? "no label" : text;
}

Json record_json(const UpdateRecorder& record, const data::Source& source) {
  Json json = {{"loss", record.mean_loss()}, {"gradient_norm", record.gradient_norm()}};
  int64_t place = 0;
  for (const auto& [batch_number, batch] : record.batches()) {
    Json samples = Json::array();
    for (const SampleRecord& sample : batch.samples) samples.push_back(sample_json(sample, source, place++));
    Json mix = nullptr;
    if (batch.mix.lambda < 1) {
      mix = {{"kind", batch.mix.is_patch ? "cutmix" : "mixup"}, {"lambda", batch.mix.lambda}};
      if (batch.mix.is_patch) {
        mix.update({{"left", batch.mix.left},
                    {"top", batch.mix.top},
                    {"width", batch.mix.width},
                    {"height", batch.mix.height}});
      }
    }
    json["batches"].push_back({{"batch", batch_number}, {"mix", mix}, {"samples", samples}});
  }
  const auto list = [](const std::vector<GradientRecord>& gradients) {
    Json entries = Json::array();
    for (const GradientRecord& gradient : gradients) {
      entries.push_back({{"name", gradient.name}, {"norm", gradient.norm}});
    }
    return entries;
  };
  json["layers"] = list(by_layer(record.gradients()));
  json["parameters"] = list(record.gradients());
  return json;
}

int64_t write_images(const std::string& folder, const UpdateRecorder& record, const data::Source& source,
                     const config::ResolvedDataOptions& options) {
  core::make_directories(folder + "/images");
  const bool is_picture = source.fixed_shape().element == data::Element::uint8;
  std::vector<engine::NamedTensor> tensors;
  std::vector<torch::Tensor> pictures;  // one per sample, for the sheet
  std::vector<std::string> captions;
  int64_t place = 0, written = 0;
  for (const auto& [number, batch] : record.batches()) {
    tensors.push_back({format("batch_{}.images", number), batch.images});
    std::vector<int64_t> labels, samples;
    for (size_t row = 0; row < batch.samples.size(); ++row, ++place) {
      const SampleRecord& sample = batch.samples[row];
      labels.push_back(sample.label);
      samples.push_back(sample.sample);
      torch::Tensor image = batch.images[static_cast<int64_t>(row)];  // [C, H, W] or [T, C, H, W]
      if (source.fixed_shape().views > 1) {                           // each frame, and its partner behind it
        image = image.unflatten(1, {2, image.size(1) / 2}).flatten(0, 1);
      }
      const torch::Tensor frames = image.dim() == 4 ? image : image.unsqueeze(0);
      if (frames.size(1) != 1 && frames.size(1) != 3) continue;
      for (int64_t frame = 0; frame < frames.size(0); ++frame) {
        const torch::Tensor bytes = bytes_of(frames[frame], is_picture, options);
        std::vector<uint8_t> png;
        data::encode_png(bytes.data_ptr<uint8_t>(), static_cast<int>(bytes.size(1)), static_cast<int>(bytes.size(0)),
                         static_cast<int>(bytes.size(2)), png);
        const std::string name =
            image.dim() == 4 ? format("{:04}-frame-{:03}.png", place, frame) : format("{:04}.png", place);
        write_plain(folder + "/images/" + name, std::string(png.begin(), png.end()));
        ++written;
        if (frame == frames.size(0) / 2) {
          pictures.push_back(bytes);
          captions.push_back(format("{:.3g} {}", sample.loss, truth_text(sample, source)));
        }
      }
    }
    tensors.push_back({format("batch_{}.labels", number), torch::tensor(labels, torch::kLong)});
    tensors.push_back({format("batch_{}.samples", number), torch::tensor(samples, torch::kLong)});
  }
  core::remove_tree(folder + "/batch.safetensors");
  engine::write_safetensors(folder + "/batch.safetensors", tensors);
  if (pictures.empty()) return written;
  const torch::Tensor& first = pictures.front();
  data::ContactSheet sheet(first.size(0), first.size(1), first.size(2), kColumns);
  sheet.add_heading("What the network got; below each image its loss and its label");
  for (size_t i = 0; i < pictures.size(); ++i) sheet.add_tile({plain(pictures[i]), captions[i]});
  write_plain(folder + "/sheet.png", sheet.png());
  return written;
}

}  // namespace stoker::train
