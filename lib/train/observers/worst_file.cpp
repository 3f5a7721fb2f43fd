// SPDX-License-Identifier: Apache-2.0
#include "train/observers/worst_file.h"

#include <torch/types.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "config/task_facts.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "core/text/base64.h"
#include "core/text/json.h"
#include "data/image/jpeg/jpeg_encode.h"
#include "data/loader/sample_reader.h"
#include "data/probe/probe_sizes.h"
#include "engine/device/device.h"
#include "engine/saved/safetensors.h"
#include "engine/saved/saved_model.h"
#include "engine/saved/weights.h"
#include "engine/task/heat_map.h"
#include "model/model.h"
#include "model/script/network_library.h"
#include "train/setup/assemble.h"

namespace stoker::train {
namespace {

constexpr int64_t kThumbnailSide = 112;  // pixels
constexpr int kThumbnailQuality = 80;

std::string name_of(const std::vector<std::string>& names, int64_t index) {
  const bool named = index >= 0 && index < static_cast<int64_t>(names.size());
  return named ? names[static_cast<size_t>(index)] : core::format("{}", index);
}

std::string numbers_text(const float* numbers, size_t count) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(4, count); ++i)
    text += core::format("{}{:.4g}", i > 0 ? ", " : "", numbers[i]);
  return count > 4 ? text + ", ..." : text;
}

struct Captions {
  std::string truth, predicted;
  bool is_wrong = false;  ///< true for a wrong prediction of classes or labels
};

/// Names of the labels that are at least their threshold.
std::string labels_text(const std::vector<std::string>& names, const std::vector<float>& values,
                        const std::vector<double>& thresholds) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), values.size()); ++i) {
    if (values[i] >= static_cast<float>(config::threshold_of(thresholds, i)))
      text += (text.empty() ? "" : ", ") + names[i];
  }
  return text.empty() ? "none" : text;
}

Captions captions_of(const data::Source& source, const engine::ShownSample& sample,
                     const config::ResolvedOptions& options) {
  const std::vector<float>& output = sample.predicted;
  if (config::is_numeric_task(options.data.task)) {
    std::vector<float> targets(static_cast<size_t>(source.num_targets()));
    source.targets(sample.sample, targets.data());
    if (!config::has_scaled_targets(options.data.task)) {
      const std::string truth = labels_text(source.target_names(), targets, {0.5}),
                        predicted = labels_text(source.target_names(), output, options.task.threshold);
      return {truth, predicted, truth != predicted};
    }
    return {numbers_text(targets.data(), targets.size()), numbers_text(output.data(), output.size())};
  }
  const std::vector<std::string>& names = source.class_names();
  const std::string truth = name_of(names, source.label(sample.sample));
  const auto predicted = [&](int64_t index, double probability) {
    return Captions{truth, core::format("{} {:.0f}%", name_of(names, index), 100 * probability),
                    index != source.label(sample.sample)};
  };
  if (output.size() == 1) {
    const bool positive = output[0] >= static_cast<float>(options.task.threshold.front());
    return predicted(positive ? 1 : 0, positive ? output[0] : 1 - output[0]);
  }
  const auto best = std::max_element(output.begin(), output.end());
  return predicted(best - output.begin(), *best);
}

/// Base64.
std::string jpeg_text(const data::Picture& picture) {
  std::vector<uint8_t> jpeg;
  data::encode_jpeg(picture.pixels.data(), static_cast<int>(picture.width), static_cast<int>(picture.height),
                    static_cast<int>(picture.channels), kThumbnailQuality, jpeg);
  return core::base64(jpeg);
}

}  // namespace

WorstFile::WorstFile(std::string run_dir, const config::ResolvedOptions& options,
                     std::shared_ptr<const data::Source> validation)
    : run_dir_(std::move(run_dir)),
      path_(run_dir_ + "/worst.json"),
      options_(options),
      validation_(std::move(validation)) {}

void WorstFile::on_epoch(const engine::EpochEvent& event) {
  if (!event.is_best) return;
  worst_ = event.worst;
  ordinary_ = event.ordinary;
  epoch_ = event.epoch;
}

void WorstFile::write(model::ImageModel& model, torch::Device device) const {
  if (worst_.empty()) return;
  std::vector<std::string> heat;
  try {
    heat = heat_jpegs(model, device);
  } catch (const std::exception& error) {  // memory may be short
    core::log_warning("no heat maps of the worst predictions: {}", engine::short_text_of(error));
  }
  try {
    core::write_file_atomically(path_, json(heat), /*durable=*/false);
  } catch (const std::exception& error) {  // memory for the pictures may be short
    core::log_warning("no pictures of the worst predictions: {}", error.what());
  }
}

/// Base64, in the order of the worst; "" for a sample that cannot be read. Empty: the network has no maps, or the run
/// was stopped, which is to end soon. One image at a time: a run may have had memory for no more.
std::vector<std::string> WorstFile::heat_jpegs(model::ImageModel& model, torch::Device device) const {
  const bool has_maps = !model::is_network_file(options_.model.model) && !model::takes_clips(options_.model.model);
  if (!has_maps || config::has_scaled_targets(options_.data.task) || core::stop_requested()) return {};
  const engine::SavedModel best = engine::load_model_of(run_dir_, "best");
  // The network that trains has the matrices of --lora, with which those weights are merged.
  const bool is_merged = options_.model.lora > 0;
  engine::load_weights(
      model, is_merged ? engine::read_safetensors(engine::evaluated_weights(best.path)).tensors : best.weights,
      best.path);
  model.eval();
  const data::TransformPlan plan = transform_plan(options_, *validation_, /*training=*/false);
  const data::SampleShape& shape = plan.shape;
  const bool has_bytes = shape.element == data::Element::uint8;
  const torch::ScalarType type = has_bytes                                 ? torch::kUInt8
                                 : shape.element == data::Element::float16 ? torch::kFloat16
                                                                           : torch::kFloat32;
  const torch::Tensor row = torch::empty({1, shape.height, shape.width, shape.channels}, type);
  data::SampleReader reader(*validation_, plan, decode_limits(options_.data), options_.train.seed);
  data::StageTimes times;
  std::vector<float> targets(static_cast<size_t>(validation_->num_targets()));
  const auto per_channel = [](const std::vector<double>& values) {
    return torch::tensor(values, torch::kFloat32).view({1, -1, 1, 1});
  };
  data::SampleShape rgb;
  rgb.height = shape.height;
  rgb.width = shape.width;
  rgb.channels = 3;
  std::vector<std::string> jpegs(worst_.size());
  for (size_t i = 0; i < worst_.size(); ++i) {
    auto* const pixels = static_cast<uint8_t*>(row.data_ptr());
    const std::string error = reader.read_into(worst_[i].sample, 0, /*round=*/0, pixels, targets.data(), times);
    if (!error.empty()) continue;
    const torch::Tensor stored = row.permute({0, 3, 1, 2}).to(torch::kFloat32);
    const torch::Tensor image = has_bytes ? stored / 255 : stored;
    const torch::Tensor heat =
        engine::heat_of(model, ((image - per_channel(options_.data.mean)) / per_channel(options_.data.std)).to(device));
    if (!heat.defined()) return {};
    const torch::Tensor shown =
        has_bytes ? image : (image - image.min()) / (image.max() - image.min()).clamp_min(1e-12);
    const torch::Tensor picture = engine::under_heat(shown, heat);
    jpegs[i] = jpeg_text(data::picture_of(picture.data_ptr<uint8_t>(), rgb, kThumbnailSide));
  }
  return jpegs;
}

std::string WorstFile::json(const std::vector<std::string>& heat) const {
  data::TransformPlan plan = transform_plan(options_, *validation_, /*training=*/false);
  data::SampleShape& shape = plan.shape;
  const bool has_fixed_size = validation_->fixed_shape().height > 0;  // numbers are not changed
  if (!has_fixed_size) {
    shape.height = std::min(shape.height, kThumbnailSide);
    shape.width = std::min(shape.width, kThumbnailSide);
  }
  data::SampleReader reader(*validation_, plan, decode_limits(options_.data), options_.train.seed);
  data::StageTimes times;
  std::vector<float> targets(static_cast<size_t>(validation_->num_targets()));
  std::vector<uint8_t> row(static_cast<size_t>(shape.bytes()));
  const uint8_t* const pixels =
      row.data() + shape.images() / shape.views / 2 * shape.image_bytes();  // of a clip its middle
  const auto list = [&](const std::vector<engine::ShownSample>& shown, const std::vector<std::string>& maps) {
    core::Json samples = core::Json::array();
    for (size_t i = 0; i < shown.size(); ++i) {
      const engine::ShownSample& sample = shown[i];
      const std::string error = reader.read_into(sample.sample, 0, /*round=*/0, row.data(), targets.data(), times);
      if (!error.empty()) continue;
      const Captions captions = captions_of(*validation_, sample, options_);
      samples.push_back({{"name", validation_->name(sample.sample)},
                         {"truth", captions.truth},
                         {"predicted", captions.predicted},
                         {"wrong", captions.is_wrong},
                         {"error", sample.error},
                         {"jpeg", jpeg_text(data::picture_of(pixels, shape, kThumbnailSide))}});
      if (i < maps.size() && !maps[i].empty()) samples.back()["heat"] = maps[i];
    }
    return samples;
  };
  const core::Json file = {{"epoch", epoch_ + 1}, {"samples", list(worst_, heat)}, {"ordinary", list(ordinary_, {})}};
  return core::json_page(file);
}

}  // namespace stoker::train
