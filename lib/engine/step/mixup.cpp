// SPDX-License-Identifier: Apache-2.0
#include "engine/step/mixup.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "core/rng.h"

namespace stoker::engine {
namespace {

/// Logarithm of a Gamma(alpha, 1) number. Marsaglia and Tsang, "A Simple Method for Generating Gamma
/// Variables", 2000; logarithms, because for a small alpha the number itself is often too small for a double.
double log_gamma_number(double alpha, core::Rng& rng) {
  const double boost = alpha < 1 ? std::log(1 - rng.uniform()) / alpha : 0;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = rng.normal();
    const double root = 1 + c * x;
    const double u = 1 - rng.uniform();
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return boost + std::log(d * v);
  }
}

/// A Beta(alpha, alpha) number in steps of 2^-20: coarser than the last bits in which math libraries differ.
double beta_number(double alpha, core::Rng& rng) {
  constexpr double kStep = 0x1.0p-20;
  const double first = log_gamma_number(alpha, rng), second = log_gamma_number(alpha, rng);
  return std::nearbyint(1 / (1 + std::exp(second - first)) / kStep) * kStep;
}

/// A box around a uniform centre with 1 - share of the area, less what lies outside the image.
Mix drawn_patch(double share, int64_t width, int64_t height, core::Rng& rng) {
  const auto centre_x = static_cast<int64_t>(rng.below(static_cast<uint64_t>(width)));
  const auto centre_y = static_cast<int64_t>(rng.below(static_cast<uint64_t>(height)));
  const double half = 0.5 * std::sqrt(1 - share);
  const auto half_width = static_cast<int64_t>(half * static_cast<double>(width));
  const auto half_height = static_cast<int64_t>(half * static_cast<double>(height));
  Mix mix;
  mix.is_patch = true;
  mix.left = std::max<int64_t>(0, centre_x - half_width);
  mix.top = std::max<int64_t>(0, centre_y - half_height);
  mix.width = std::min(width, centre_x + half_width) - mix.left;
  mix.height = std::min(height, centre_y + half_height) - mix.top;
  mix.lambda = 1 - static_cast<double>(mix.width * mix.height) / static_cast<double>(width * height);
  return mix;
}

}  // namespace

std::string mix_text(const MixSettings& settings) {
  using core::format;
  const bool has_mixup = settings.mixup_alpha > 0, has_cutmix = settings.cutmix_alpha > 0;
  std::string text = has_mixup ? format("mixup {:g}", settings.mixup_alpha) : "";
  if (has_cutmix) text += (has_mixup ? " or " : "") + format("CutMix {:g}", settings.cutmix_alpha);
  if (text.empty() || settings.probability == 1) return text;
  return text + format(" (of {:g} % of batches)", 100 * settings.probability);
}

Mix draw_mix(const MixSettings& settings, int64_t epoch, int64_t batch, int64_t width, int64_t height) {
  const bool has_mixup = settings.mixup_alpha > 0, has_cutmix = settings.cutmix_alpha > 0;
  if (!has_mixup && !has_cutmix) return {};
  core::Rng rng(settings.seed, core::RngPurpose::mixup, static_cast<uint64_t>(epoch), static_cast<uint64_t>(batch));
  // The order of draws is part of the format of a run.
  if (!rng.chance(settings.probability)) return {};
  const bool prefers_cutmix = rng.chance(settings.switch_probability);
  if (has_cutmix && (prefers_cutmix || !has_mixup)) {
    return drawn_patch(beta_number(settings.cutmix_alpha, rng), width, height, rng);
  }
  Mix mix;
  mix.lambda = beta_number(settings.mixup_alpha, rng);
  return mix;
}

torch::Tensor partners(const torch::Tensor& rows) {
  const int64_t last = rows.size(0) - 1;
  return torch::cat({rows.narrow(0, last, 1), rows.narrow(0, 0, last)});
}

data::Batch with_partners_targets(data::Batch batch) {
  batch.labels = partners(batch.labels);
  if (batch.targets.defined()) batch.targets = partners(batch.targets);
  return batch;
}

torch::Tensor mixed_images(const torch::Tensor& images, const Mix& mix) {
  if (mix.lambda == 1) return images;
  const int64_t last = images.size(0) - 1;
  if (mix.is_patch) {
    const auto patch = [&mix](const torch::Tensor& rows) {  // view [B, ..., mix.height, mix.width]
      return rows.narrow(-2, mix.top, mix.height).narrow(-1, mix.left, mix.width);
    };
    const torch::Tensor mixed = images.clone();
    patch(mixed).copy_(partners(patch(images)));
    return mixed;
  }
  const torch::Tensor mixed = images * mix.lambda;  // keeps the memory format, which roll() loses on CUDA
  mixed.narrow(0, 1, last).add_(images.narrow(0, 0, last), 1 - mix.lambda);
  mixed.narrow(0, 0, 1).add_(images.narrow(0, last, 1), 1 - mix.lambda);
  return mixed;
}

}  // namespace stoker::engine
