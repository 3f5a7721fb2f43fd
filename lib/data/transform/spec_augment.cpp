// SPDX-License-Identifier: Apache-2.0
#include "data/transform/spec_augment.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/format.h"

namespace stoker::data {
namespace {

template <typename Number>
void append_bytes(const Number& number, std::vector<uint8_t>& bytes) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(&number);
  bytes.insert(bytes.end(), begin, begin + sizeof number);
}

/// Writes the fill pixel `count` times.
void write_blank(const std::vector<uint8_t>& fill, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out + i * static_cast<int64_t>(fill.size()), fill.data(), fill.size());
}

}  // namespace

MaskPlan make_mask_plan(const config::ResolvedAugmentOptions& options, const std::vector<double>& mean,
                        const SampleShape& shape) {
  MaskPlan plan{options.freq_masks, options.freq_mask_param, options.time_masks, options.time_mask_param, {}};
  for (int64_t c = 0; c < shape.channels; ++c) {
    const double value = mean.empty() ? 0 : mean[std::min(static_cast<size_t>(c), mean.size() - 1)];
    if (shape.element == Element::uint8) {
      plan.fill.push_back(static_cast<uint8_t>(std::clamp(std::nearbyint(255 * value), 0.0, 255.0)));
    } else if (shape.element == Element::float16) {
      append_bytes(c10::Half(static_cast<float>(value)), plan.fill);
    } else {
      append_bytes(static_cast<float>(value), plan.fill);
    }
  }
  return plan;
}

std::string masks_text(const MaskPlan& plan) {
  std::string text;
  const auto add = [&text](int64_t masks, const char* what, int64_t param) {
    if (masks == 0) return;
    text +=
        core::format("{}{} {} mask{} below {}", text.empty() ? "" : ", ", masks, what, masks == 1 ? "" : "s", param);
  };
  add(plan.freq_masks, "frequency", plan.freq_param);
  add(plan.time_masks, "time", plan.time_param);
  return text;
}

MaskBand draw_band(int64_t param, int64_t side, core::Rng& rng) {
  const double width = rng.uniform() * static_cast<double>(std::min(param, side));
  const double begin = rng.uniform() * (static_cast<double>(side) - width);
  return {static_cast<int64_t>(begin), static_cast<int64_t>(width)};
}

void mask_spectrogram(const MaskPlan& plan, const SampleKey& key, const SampleShape& shape, uint8_t* row) {
  const int64_t pixel = shape.channels * bytes_of(shape.element), line = shape.width * pixel;
  const auto each_image = [&](const auto& change) {
    for (int64_t i = 0; i < shape.images(); ++i) change(row + i * shape.image_bytes());
  };
  core::Rng freq_rng(key.seed, core::RngPurpose::frequency_mask, key.epoch, key.sample);
  for (int64_t mask = 0; mask < plan.freq_masks; ++mask) {
    const MaskBand band = draw_band(plan.freq_param, shape.height, freq_rng);
    each_image([&](uint8_t* image) { write_blank(plan.fill, band.size * shape.width, image + band.begin * line); });
  }
  core::Rng time_rng(key.seed, core::RngPurpose::time_mask, key.epoch, key.sample);
  for (int64_t mask = 0; mask < plan.time_masks; ++mask) {
    const MaskBand band = draw_band(plan.time_param, shape.width, time_rng);
    each_image([&](uint8_t* image) {
      for (int64_t y = 0; y < shape.height; ++y)
        write_blank(plan.fill, band.size, image + y * line + band.begin * pixel);
    });
  }
}

}  // namespace stoker::data
