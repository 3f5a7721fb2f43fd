// SPDX-License-Identifier: Apache-2.0
// `train preview`: what the network will see, as a picture.
#include "commands/preview/preview.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "data/image/contact_sheet.h"
#include "data/loader/sample_reader.h"
#include "data/open_datasets.h"
#include "data/probe/probe_sizes.h"
#include "train/failure/result_output.h"
#include "train/setup/assemble.h"
#include "train/setup/settings.h"

namespace stoker::train {
namespace {

constexpr int64_t kPreviewColumns = 8;  // also the epochs that are shown
constexpr int64_t kBatchImages = 32;    // of the first batch
constexpr int64_t kBatchClips = 8;      // of the first batch, if it holds clips
constexpr size_t kFollowedSamples = 4;  // shown over several epochs
constexpr int64_t kWidest = 4096;       // pixels of samples in a row: long spectrograms stand in fewer columns

/// Normalised images as the network gets them, back as bytes: [n, C, H, W] to n times H x W x C.
std::vector<std::vector<uint8_t>> pixels_of(const torch::Tensor& images, const config::ResolvedDataOptions& options) {
  const auto per_channel = [](const std::vector<double>& values) {
    return torch::tensor(values, torch::kFloat32).view({1, -1, 1, 1});  // [1, C, 1, 1]
  };
  const torch::Tensor unit = images.to(torch::kCPU) * per_channel(options.std) + per_channel(options.mean);
  const torch::Tensor bytes = (unit * 255).round().clamp(0, 255).to(torch::kUInt8).permute({0, 2, 3, 1}).contiguous();
  const int64_t size = bytes.numel() / std::max<int64_t>(1, bytes.size(0));
  std::vector<std::vector<uint8_t>> pixels;
  for (int64_t i = 0; i < bytes.size(0); ++i) {
    const uint8_t* const begin = bytes.data_ptr<uint8_t>() + i * size;
    pixels.emplace_back(begin, begin + size);
  }
  return pixels;
}

/// Draws samples that are not pictures as gray or RGB bytes.
bool holds_numbers(const data::Source& source) {
  const data::SampleShape shape = source.fixed_shape();
  return shape.height > 0 && (shape.element != data::Element::uint8 || (shape.channels != 1 && shape.channels != 3));
}

/// The same of samples that are not pictures, such as spectrograms: each stretched over black to white.
std::vector<std::vector<uint8_t>> pictures_of(const torch::Tensor& samples) {
  const torch::Tensor rows =
      samples.to(torch::kCPU).to(torch::kFloat32).permute({0, 2, 3, 1}).contiguous();  // [n, H, W, C]
  const data::SampleShape shape = {0, rows.size(1), rows.size(2), rows.size(3), data::Element::float32, 1};
  std::vector<std::vector<uint8_t>> pixels;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const torch::Tensor row = rows[i];
    pixels.push_back(data::picture_of(static_cast<const uint8_t*>(row.data_ptr()), shape).pixels);
  }
  return pixels;
}

std::string class_of(const data::Source& source, int64_t sample) {
  const int64_t label = source.label(sample);
  const std::vector<std::string>& names = source.class_names();
  return label >= 0 && label < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(label)] : "no label";
}

/// A row of tiles for each clip [n, T, C, H, W], at most as many frames as there are columns.
void add_clips(const config::ResolvedOptions& options, const data::Source& source, const torch::Tensor& clips,
               const std::vector<int64_t>& samples, data::ContactSheet& sheet) {
  const int64_t frames = clips.size(1), shown = std::min(kPreviewColumns, frames);
  for (int64_t n = 0; n < clips.size(0); ++n) {
    const int64_t sample = samples[static_cast<size_t>(n)];
    sheet.add_heading(core::format("{}: {}", source.relative_name(sample), class_of(source, sample)));
    const auto pixels = pixels_of(clips[n], options.data);
    for (int64_t i = 0; i < shown; ++i) {
      const int64_t frame = i * frames / shown;
      sheet.add_tile({pixels[static_cast<size_t>(frame)], core::format("frame {} of {}", frame + 1, frames)});
    }
  }
}

/// The first batch of the run, through loader, augmentation and normalisation. Returns the samples that it shows.
std::vector<int64_t> add_first_batch(const config::ResolvedOptions& options,
                                     const std::shared_ptr<const data::Source>& source, data::ContactSheet& sheet) {
  const auto feed = training_feed(options, source, open_and_configure_device(options));
  feed->begin_epoch(0);
  data::Batch batch;
  if (!feed->next(batch) || batch.image_count() == 0) {
    throw core::Error(core::ErrorKind::data, "the first batch holds no usable image", "train names the bad ones");
  }
  const bool has_clips = batch.images.dim() == 5;
  const int64_t shown = std::min(has_clips ? kBatchClips : kBatchImages, batch.image_count());
  const bool mixes = options.augment.mixup_alpha > 0 || options.augment.cutmix_alpha > 0;
  sheet.add_heading(core::format("First batch of epoch 1: {} of {} {}, as the network gets them{}, seed {}", shown,
                                 batch.image_count(), has_clips ? "clips" : data::sample_noun(*source).several,
                                 mixes ? " but for mixup and CutMix" : "", options.train.seed));
  torch::Tensor images = batch.images.slice(0, 0, shown);
  if (source->fixed_shape().views > 1) {  // [n, T, 2 * C, H, W]: each frame, and its partner behind it
    images = images.unflatten(2, {2, images.size(2) / 2}).flatten(1, 2);
  }
  if (has_clips) {
    add_clips(options, *source, images, batch.samples, sheet);
  } else {
    const auto pixels = holds_numbers(*source) ? pictures_of(images) : pixels_of(images, options.data);
    for (size_t i = 0; i < pixels.size(); ++i) sheet.add_tile({pixels[i], class_of(*source, batch.samples[i])});
  }
  return {batch.samples.begin(), batch.samples.begin() + shown};
}

/// Adds `samples` as the first epochs show them: what is drawn depends on seed, epoch and sample alone. Of clips the
/// first frame.
void add_epochs(const config::ResolvedOptions& options, const data::Source& source, const std::vector<int64_t>& samples,
                data::ContactSheet& sheet) {
  const data::TransformPlan plan = transform_plan(options, source, /*training=*/true);
  data::SampleReader reader(source, plan, decode_limits(options.data), options.train.seed);
  data::StageTimes times;
  std::vector<float> targets(static_cast<size_t>(source.num_targets()));
  std::vector<uint8_t> row(static_cast<size_t>(plan.shape.bytes()));
  for (size_t i = 0; i < std::min(kFollowedSamples, samples.size()); ++i) {
    sheet.add_heading(core::format("{} in epochs 1 to {}", source.name(samples[i]), kPreviewColumns));
    for (int64_t epoch = 0; epoch < kPreviewColumns; ++epoch) {
      const std::string error = reader.read_into(samples[i], epoch, /*round=*/0, row.data(), targets.data(), times);
      sheet.add_tile({data::picture_of(row.data(), plan.shape).pixels,
                      error.empty() ? core::format("epoch {}", epoch + 1) : error});
    }
  }
}

}  // namespace

Outcome preview(const Context& context, const PreviewFlags& flags) {
  const config::Configuration& configuration = context.configuration;
  Settings settings(configuration);
  const config::ResolvedOptions& options = settings.options();
  config::DataOptions given = configuration.options.data;
  refuse_output_over_input(flags.output, {given.data_dir}, {"preview.png"});
  if (!given.val_split && given.val_fraction == 0)
    given.val_split = config::kNoValidation;  // it shows training samples
  const data::Datasets datasets = data::open_datasets(given);
  settings.settle(facts_of(*datasets.train, configuration.options.data));
  if (configuration.flags.print_config) {
    write_result("-", config::render_yaml(configuration, settings.resolution()));
    return {core::kExitOk, ""};
  }
  const data::SampleShape shape = transform_plan(options, *datasets.train, /*training=*/true).shape;
  const int64_t columns = std::clamp<int64_t>(kWidest / shape.width, 1, kPreviewColumns);
  data::ContactSheet sheet(shape.height, shape.width, shape.channels >= 3 ? 3 : 1, columns);
  const std::vector<int64_t> samples = add_first_batch(options, datasets.train, sheet);
  add_epochs(options, *datasets.train, samples, sheet);
  write_result(flags.output, sheet.png());
  if (flags.output != "-") {
    core::log_info("written: {} ({} x {} pixels)", core::printable(flags.output), sheet.width(), sheet.height());
  }
  return {core::kExitOk, "previewed"};
}

}  // namespace stoker::train
