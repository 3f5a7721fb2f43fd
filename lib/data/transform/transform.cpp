// SPDX-License-Identifier: Apache-2.0
#include "data/transform/transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/format.h"

namespace stoker::data {
namespace {

/// To the nearest whole number, halves to even, as Python's round() that torchvision's geometry uses.
int rounded_even(double value) { return static_cast<int>(std::nearbyint(value)); }

int drawn_below(core::Rng& rng, int bound) { return static_cast<int>(rng.below(static_cast<uint64_t>(bound))); }

/// The whole source, squashed to the output.
SampleGeometry whole_source(const TransformPlan& plan, int source_width, int source_height) {
  SampleGeometry geometry;
  geometry.width = source_width;
  geometry.height = source_height;
  geometry.resize_width = plan.out_width();
  geometry.resize_height = plan.out_height();
  return geometry;
}

/// torchvision RandomResizedCrop.get_params: ten tries, then the largest centred box of an allowed ratio.
SampleGeometry random_resized_box(const TransformPlan& plan, int source_width, int source_height, core::Rng& rng) {
  SampleGeometry geometry = whole_source(plan, source_width, source_height);
  const double area = static_cast<double>(source_width) * source_height;
  const double log_min = std::log(plan.ratio_min), log_max = std::log(plan.ratio_max);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * rng.uniform(plan.scale_min, plan.scale_max);
    const double ratio = std::exp(rng.uniform(log_min, log_max));
    geometry.width = rounded_even(std::sqrt(target * ratio));
    geometry.height = rounded_even(std::sqrt(target / ratio));
    if (geometry.width < 1 || geometry.width > source_width) continue;
    if (geometry.height < 1 || geometry.height > source_height) continue;
    geometry.top = drawn_below(rng, source_height - geometry.height + 1);
    geometry.left = drawn_below(rng, source_width - geometry.width + 1);
    return geometry;
  }
  const double source_ratio = static_cast<double>(source_width) / source_height;
  geometry.width = source_width;
  geometry.height = source_height;
  if (source_ratio < plan.ratio_min) {
    geometry.height = std::clamp(rounded_even(source_width / plan.ratio_min), 1, source_height);
  } else if (source_ratio > plan.ratio_max) {
    geometry.width = std::clamp(rounded_even(source_height * plan.ratio_max), 1, source_width);
  }
  geometry.top = (source_height - geometry.height) / 2;
  geometry.left = (source_width - geometry.width) / 2;
  return geometry;
}

/// The whole source moved by up to crop_padding output pixels each way.
SampleGeometry padded_box(const TransformPlan& plan, int source_width, int source_height, core::Rng& rng) {
  SampleGeometry geometry = whole_source(plan, source_width, source_height);
  const int padding = static_cast<int>(plan.crop_padding);
  const auto drawn_shift = [&](int source_side, int out_side) {
    const int shift = drawn_below(rng, 2 * padding + 1) - padding;
    return rounded_even(static_cast<double>(shift) * source_side / out_side);
  };
  geometry.top = drawn_shift(source_height, plan.out_height());
  geometry.left = drawn_shift(source_width, plan.out_width());
  return geometry;
}

/// torchvision Resize(short side) and CenterCrop; the short side is floor(side / crop_pct), like timm. An output
/// that is not square lies within the smallest resized image that covers it, so enlarged: timm's ResizeKeepRatio, which
/// rounds the longer side to the nearest, not down.
SampleGeometry centre_window(const TransformPlan& plan, int source_width, int source_height,
                             const CropView& view = {}) {
  SampleGeometry geometry = whole_source(plan, source_width, source_height);
  // The nudge keeps exact quotients, such as 224 / 0.875 = 256, from falling short by one rounding.
  const auto enlarged = [&](int out) {
    return static_cast<int64_t>(std::floor(view.scale * out / plan.crop_pct + 1e-9));
  };
  const int64_t least_width = enlarged(plan.out_width()), least_height = enlarged(plan.out_height());
  const int64_t width = source_width, height = source_height;
  const bool is_narrow = width * least_height <= height * least_width;
  const auto in_proportion = [&](int64_t least, int64_t side, int64_t other) {
    const bool is_square = plan.out_width() == plan.out_height();
    return is_square ? static_cast<int>(least * side / other)
                     : rounded_even(static_cast<double>(least * side) / static_cast<double>(other));
  };
  geometry.resize_width = is_narrow ? static_cast<int>(least_width) : in_proportion(least_height, width, height);
  geometry.resize_height = is_narrow ? in_proportion(least_width, height, width) : static_cast<int>(least_height);
  const auto place = [](int where, int space) {
    return where == 0 ? rounded_even(space / 2.0) : where < 0 ? 0 : space;
  };
  geometry.crop_left = place(view.across, geometry.resize_width - plan.out_width());
  geometry.crop_top = place(view.down, geometry.resize_height - plan.out_height());
  if (view.mirrored) geometry.crop_left = geometry.resize_width - plan.out_width() - geometry.crop_left;
  return geometry;
}

/// Pillow's ImageOps.pad(): the whole source as large as it fits, in the middle of black.
SampleGeometry letterbox(const TransformPlan& plan, int source_width, int source_height) {
  SampleGeometry geometry = whole_source(plan, source_width, source_height);
  const double width = source_width, height = source_height;
  const int out_width = plan.out_width(), out_height = plan.out_height();
  if (width / height > static_cast<double>(out_width) / out_height) {
    geometry.resize_height = std::max(1, rounded_even(height / width * out_width));
  } else {
    geometry.resize_width = std::max(1, rounded_even(width / height * out_height));
  }
  geometry.crop_left = -rounded_even((out_width - geometry.resize_width) * 0.5);
  geometry.crop_top = -rounded_even((out_height - geometry.resize_height) * 0.5);
  return geometry;
}

SampleGeometry drawn_box(const TransformPlan& plan, int source_width, int source_height, core::Rng& rng,
                         const CropView& view) {
  if (!plan.training) {
    switch (plan.eval_crop) {
      case config::EvalCrop::none: return whole_source(plan, source_width, source_height);
      case config::EvalCrop::center: return centre_window(plan, source_width, source_height, view);
      case config::EvalCrop::letterbox: return letterbox(plan, source_width, source_height);
    }
  }
  switch (plan.train_crop) {
    case config::TrainCrop::none: return whole_source(plan, source_width, source_height);
    case config::TrainCrop::center: return centre_window(plan, source_width, source_height);
    case config::TrainCrop::random_resized: return random_resized_box(plan, source_width, source_height, rng);
    case config::TrainCrop::padded: return padded_box(plan, source_width, source_height, rng);
    case config::TrainCrop::letterbox: return letterbox(plan, source_width, source_height);
  }
  return whole_source(plan, source_width, source_height);
}

/// The region as packed pixels with zeros where it lies outside the source.
const uint8_t* padded_region(const uint8_t* pixels, int source_height, int source_width, int channels,
                             const SampleGeometry& geometry, std::vector<uint8_t>& padded) {
  const int64_t row_bytes = static_cast<int64_t>(geometry.width) * channels;
  padded.assign(static_cast<size_t>(row_bytes * geometry.height), 0);
  const int from = std::max(0, geometry.left), to = std::min(source_width, geometry.left + geometry.width);
  if (from >= to) return padded.data();
  for (int y = std::max(0, -geometry.top); y < std::min(geometry.height, source_height - geometry.top); ++y) {
    const uint8_t* const row = pixels + static_cast<int64_t>(y + geometry.top) * source_width * channels;
    std::memcpy(padded.data() + y * row_bytes + static_cast<int64_t>(from - geometry.left) * channels,
                row + static_cast<int64_t>(from) * channels,
                static_cast<size_t>(to - from) * static_cast<size_t>(channels));
  }
  return padded.data();
}

/// Pixels of a row from right to left.
template <int kChannels>
void mirror_pixels(const uint8_t* row, int64_t width, uint8_t* out) {
  for (int64_t x = 0; x < width; ++x) std::memcpy(out + x * kChannels, row + (width - 1 - x) * kChannels, kChannels);
}

/// Eight gray pixels at a time: small ones would spend most of a loader's time here.
template <>
void mirror_pixels<1>(const uint8_t* row, int64_t width, uint8_t* out) {
  int64_t x = 0;
  for (; x + 8 <= width; x += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, row + width - x - 8, sizeof eight);
    eight = __builtin_bswap64(eight);
    std::memcpy(out + x, &eight, sizeof eight);
  }
  for (; x < width; ++x) out[x] = row[width - 1 - x];
}

/// Copies the window of a region that keeps its size; 1 or 3 channels.
void copy_window(const ResampleTask& task, uint8_t* out) {
  const int64_t row_bytes = static_cast<int64_t>(task.out_width) * task.channels;
  for (int y = 0; y < task.out_height; ++y, out += task.out_row_bytes()) {
    const uint8_t* const row = task.source + (y + task.window_top) * task.source_stride +
                               static_cast<int64_t>(task.window_left) * task.channels;
    if (!task.mirror) {
      std::memcpy(out, row, static_cast<size_t>(row_bytes));
      continue;
    }
    (task.channels == 1 ? mirror_pixels<1> : mirror_pixels<3>)(row, task.out_width, out);
  }
}

ResizeFilter resize_filter_of(config::Interpolation interpolation) {
  switch (interpolation) {
    case config::Interpolation::bilinear: return ResizeFilter::bilinear;
    case config::Interpolation::bicubic: return ResizeFilter::bicubic;
    case config::Interpolation::lanczos: return ResizeFilter::lanczos;
  }
  return ResizeFilter::bilinear;
}

/// A mirrored head looks and leans the other way; up stays up. In the order yaw, pitch, roll.
TargetRule target_rule_of(config::TaskKind task) {
  TargetRule rule;
  if (task == config::TaskKind::head_pose) rule.flip_signs = {-1, 1, -1};
  return rule;
}

}  // namespace

void TargetRule::mirror(float* targets) const {
  for (const float sign : flip_signs) *targets++ *= sign;
}

TransformPlan make_transform_plan(const config::ResolvedDataOptions& data,
                                  const config::ResolvedAugmentOptions& augment, bool training,
                                  const SampleShape& fixed) {
  TransformPlan plan;
  plan.training = training;
  plan.clip = {data.frame_sampling, data.frame_stride, training};
  const auto add_masks = [&] {
    if (training) plan.masks = make_mask_plan(augment, data.mean, plan.shape);
  };
  if (fixed.height > 0) {
    plan.shape = fixed;
    plan.train_crop = config::TrainCrop::none;
    plan.eval_crop = config::EvalCrop::none;
    add_masks();
    return plan;
  }
  plan.shape = image_shape(data.img_size.height, data.img_size.width, data.in_chans);
  plan.shape.frames = fixed.frames;
  plan.shape.views = fixed.views;
  plan.eval_crop = augment.eval_crop;
  plan.crop_pct = augment.crop_pct;
  plan.filter = resize_filter_of(augment.interpolation);
  if (!training) return plan;
  plan.train_crop = augment.train_crop;
  plan.scale_min = augment.scale_min;
  plan.scale_max = augment.scale_max;
  plan.ratio_min = augment.ratio_min;
  plan.ratio_max = augment.ratio_max;
  plan.crop_padding = augment.crop_padding;
  plan.hflip = augment.hflip;
  plan.augment = make_augment_plan(data, augment);
  add_masks();
  plan.target_rule = target_rule_of(data.task);
  return plan;
}

void add_views(config::TestTimeAugmentation tta, TransformPlan& plan) {
  if (tta == config::TestTimeAugmentation::scales) plan.views = {{1}, {1.125}, {1.25}};
  if (tta == config::TestTimeAugmentation::ten_crop) {
    for (const bool mirrored : {false, true}) {
      for (const auto& [down, across] : {std::pair{-1, -1}, {-1, 1}, {1, -1}, {1, 1}, {0, 0}}) {
        plan.views.push_back({1, across, down, mirrored});
      }
    }
  }
  plan.shape.height *= std::max<int64_t>(1, static_cast<int64_t>(plan.views.size()));
}

SampleGeometry same_part(const SampleGeometry& drawn, int from_width, int from_height, int width, int height) {
  if (from_width == width && from_height == height) return drawn;
  SampleGeometry same = drawn;
  const auto scaled = [](int value, int from, int to) { return rounded_even(static_cast<double>(value) * to / from); };
  same.left = scaled(drawn.left, from_width, width);
  same.top = scaled(drawn.top, from_height, height);
  same.width = std::max(1, scaled(drawn.left + drawn.width, from_width, width) - same.left);
  same.height = std::max(1, scaled(drawn.top + drawn.height, from_height, height) - same.top);
  return same;
}

std::string transform_text(const TransformPlan& plan) {
  std::string text = !plan.training                                         ? ""
                     : plan.train_crop == config::TrainCrop::random_resized ? "random-resized crop"
                     : plan.train_crop == config::TrainCrop::padded         ? "padded crop"
                     : plan.train_crop == config::TrainCrop::letterbox      ? "letterbox"
                                                                            : "";
  const auto add = [&text](const std::string& step) { text += (text.empty() || step.empty() ? "" : ", ") + step; };
  if (plan.training && plan.hflip > 0) add(core::format("mirrored {:g}", plan.hflip));
  add(chain_text(plan.augment));
  add(masks_text(plan.masks));
  return text.empty() ? "none" : text;
}

SampleGeometry draw_geometry(const TransformPlan& plan, int source_width, int source_height, core::Rng& rng,
                             const CropView& view) {
  SampleGeometry geometry = drawn_box(plan, source_width, source_height, rng, view);
  geometry.flip = view.mirrored || (plan.training && plan.hflip > 0 && rng.chance(plan.hflip));
  return geometry;
}

bool has_bars(const TransformPlan& plan, const SampleGeometry& geometry) {
  return geometry.resize_width < plan.out_width() || geometry.resize_height < plan.out_height();
}

ResampleTask resample_task(const TransformPlan& plan, const SampleGeometry& geometry) {
  ResampleTask task;
  task.channels = plan.channels();
  task.source_width = geometry.width;
  task.source_height = geometry.height;
  task.resized_width = geometry.resize_width;
  task.resized_height = geometry.resize_height;
  task.window_left = std::max(0, geometry.crop_left);
  task.window_top = std::max(0, geometry.crop_top);
  task.out_width = std::min(plan.out_width(), geometry.resize_width);
  task.out_height = std::min(plan.out_height(), geometry.resize_height);
  task.out_stride = int64_t{plan.out_width()} * task.channels;
  task.mirror = geometry.flip;
  task.filter = plan.filter;
  return task;
}

uint8_t* filled_part(const TransformPlan& plan, const SampleGeometry& geometry, uint8_t* row) {
  if (!has_bars(plan, geometry)) return row;
  const int64_t stride = int64_t{plan.out_width()} * plan.channels();
  std::memset(row, 0, static_cast<size_t>(stride * plan.out_height()));
  return row + std::max(0, -geometry.crop_top) * stride + int64_t{std::max(0, -geometry.crop_left)} * plan.channels();
}

void transform_into(const uint8_t* pixels, int source_height, int source_width, const TransformPlan& plan,
                    const SampleGeometry& geometry, TransformScratch& scratch, uint8_t* row) {
  ResampleTask task = resample_task(plan, geometry);
  const bool inside = geometry.left >= 0 && geometry.top >= 0 && geometry.left + geometry.width <= source_width &&
                      geometry.top + geometry.height <= source_height;
  if (inside) {
    task.source_stride = static_cast<int64_t>(source_width) * task.channels;
    task.source = pixels + geometry.top * task.source_stride + static_cast<int64_t>(geometry.left) * task.channels;
  } else {
    task.source_stride = static_cast<int64_t>(geometry.width) * task.channels;
    task.source = padded_region(pixels, source_height, source_width, task.channels, geometry, scratch.padded);
  }
  uint8_t* const out = filled_part(plan, geometry, row);
  if (geometry.keeps_size()) {
    copy_window(task, out);
  } else {
    resample(task, scratch.resample, out);
  }
}

}  // namespace stoker::data
