// SPDX-License-Identifier: Apache-2.0
#include "data/clip_frames.h"

#include <algorithm>

namespace stoker::data {

void choose_frames(const ClipPlan& plan, int64_t available, int64_t wanted, core::Rng& rng,
                   std::vector<int64_t>& chosen) {
  chosen.clear();
  if (plan.sampling == config::FrameSampling::uniform && available >= wanted) {
    for (int64_t i = 0; i < wanted; ++i) chosen.push_back((2 * i + 1) * available / (2 * wanted));
    return;
  }
  const bool strides = plan.sampling == config::FrameSampling::stride;
  const int64_t step = strides ? plan.stride : 1;
  const int64_t starts = std::max<int64_t>(1, available - (wanted - 1) * step);
  const int64_t start =
      strides && plan.random ? static_cast<int64_t>(rng.below(static_cast<uint64_t>(starts))) : (starts - 1) / 2;
  for (int64_t i = 0; i < wanted; ++i) chosen.push_back(std::min(available - 1, start + i * step));
}

SampleShape clip_shape(int64_t frames, int64_t views) {
  SampleShape shape;
  shape.frames = frames > 1 ? frames : 0;
  shape.views = views;
  return shape;
}

}  // namespace stoker::data
