// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/update_files.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "core/system/file.h"
#include "data/image/contact_sheet.h"
#include "data/image/opencv_encode.h"
#include "engine/checkpoint/safetensors.h"

namespace stoker::train {
namespace {

using core::format;
using core::Json;

constexpr int64_t kColumns = 8;

Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

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
               {"loss", json_number(sample.loss)},
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
  Json json = {{"loss", json_number(record.mean_loss())}, {"gradient_norm", json_number(record.gradient_norm())}};
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
      entries.push_back({{"name", gradient.name}, {"norm", json_number(gradient.norm)}});
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
