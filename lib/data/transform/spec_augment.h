// SPDX-License-Identifier: Apache-2.0
// Bands of frequency and stretches of time that are blanked in a spectrogram: Park et al. 2019, "SpecAugment:
// A Simple Data Augmentation Method for Automatic Speech Recognition" (arXiv 1904.08779), without time
// warping; drawn as torchaudio's FrequencyMasking and TimeMasking draw them. Frequency is the height of a
// sample, time its width.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/rng.h"
#include "data/sample_shape.h"
#include "data/transform/augment.h"

namespace stoker::data {

/// Fixed for a run.
struct MaskPlan {
  int64_t freq_masks = 0, freq_param = 0;  ///< bands, each narrower than freq_param bins
  int64_t time_masks = 0, time_param = 0;  ///< segments, each shorter than time_param steps
  std::vector<uint8_t> fill;               ///< one pixel of the sample's element: the mean, 0 after normalisation
  bool does_anything() const { return freq_masks > 0 || time_masks > 0; }
};

/// `mean` per channel: of bytes as numbers in [0, 1], of floats as they are.
MaskPlan make_mask_plan(const config::ResolvedAugmentOptions& options, const std::vector<double>& mean,
                        const SampleShape& shape);
/// "2 frequency masks below 8, 2 time masks below 8"; empty when there are none.
std::string masks_text(const MaskPlan& plan);

/// What is blanked along one side.
struct MaskBand {
  int64_t begin = 0, size = 0;
};
/// Width uniform in [0, min(param, side)), then begin uniform in [0, side - width), both rounded down.
MaskBand draw_band(int64_t param, int64_t side, core::Rng& rng);

/// Blanks what is drawn for `key` in the row of a batch, in place; all frames of a clip alike.
void mask_spectrogram(const MaskPlan& plan, const SampleKey& key, const SampleShape& shape, uint8_t* row);

}  // namespace stoker::data
