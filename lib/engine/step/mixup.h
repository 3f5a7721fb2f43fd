// SPDX-License-Identifier: Apache-2.0
// Mixup and CutMix: pairs of images of one batch become one, and the loss is shared between their labels.
// The draw is a pure function of (seed, epoch, batch): the same after any resume and for any number of
// workers.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "data/feed/device_feed.h"

namespace stoker::engine {

struct MixSettings {
  double mixup_alpha = 0;           ///< the share is drawn from Beta(alpha, alpha); 0: no mixup
  double cutmix_alpha = 0;          ///< the same for CutMix
  double probability = 1;           ///< that a batch is mixed at all
  double switch_probability = 0.5;  ///< probability of CutMix where both are on
  uint64_t seed = 0;
};

/// The draw for one batch. Row i is mixed with its partner, row i - 1 (row 0 with the last one).
struct Mix {
  double lambda = 1;      ///< the share of row i itself, in [0, 1]; 1: nothing is mixed
  bool is_patch = false;  ///< CutMix: the partner's pixels within the box; else the pixels are averaged
  int64_t left = 0, top = 0, width = 0, height = 0;  ///< pixels; of the box
};

/// In a few words, such as "mixup 0.2 or CutMix 1 (of 90 % of batches)"; empty when nothing is mixed.
std::string mix_text(const MixSettings& settings);

/// The draw for batch number `batch` of an epoch, with images of `width` x `height` pixels.
/// Mixup: Zhang, Cisse, Dauphin, Lopez-Paz 2018. CutMix: Yun et al. 2019, with the box and the share
/// corrected for the image's border as torchvision has them.
Mix draw_mix(const MixSettings& settings, int64_t epoch, int64_t batch, int64_t width, int64_t height);

/// Each row's partner: row i is row i - 1 of `rows` [B, ...], row 0 the last one.
torch::Tensor partners(const torch::Tensor& rows);

/// `batch` with each row's label and targets replaced by its partner's; the images stay.
data::Batch with_partners_targets(data::Batch batch);

/// images float32 [B, C, H, W], or clips [B, T, C, H, W], on any device -> the same shape, type and memory format. Not
/// mixed: `images` itself.
torch::Tensor mixed_images(const torch::Tensor& images, const Mix& mix);

}  // namespace stoker::engine
