// SPDX-License-Identifier: Apache-2.0
// Which frames of a video make a clip, and its shape. Works on numbers of frames, not on files.
#pragma once

#include <cstdint>
#include <vector>

#include "config/options.h"
#include "core/rng.h"
#include "data/source.h"

namespace stoker::data {

/// How a clip is taken from a video.
struct ClipPlan {
  config::FrameSampling sampling = config::FrameSampling::uniform;
  int64_t stride = 1;   ///< frames from one to the next; of FrameSampling::stride
  bool random = false;  ///< FrameSampling::stride begins anywhere, else in the middle
};

/// Writes the `wanted` frames of a video that has `available`, both at least 1, rising, to `chosen`. Uniform:
/// the middle of each of `wanted` equal parts, or every frame where there are not more. A video that is too
/// short gives its last frame again. Draws from `rng` once, if at all.
void choose_frames(const ClipPlan& plan, int64_t available, int64_t wanted, core::Rng& rng,
                   std::vector<int64_t>& chosen);

/// The shape of clips of `frames` frames, of any size; a clip of one frame is an image.
SampleShape clip_shape(int64_t frames, int64_t views);

}  // namespace stoker::data
