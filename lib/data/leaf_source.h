// SPDX-License-Identifier: Apache-2.0
// The base of sources that read samples themselves, and of lists of the frames of another source, whose samples are not
// those of that source. Never the base of a source in front of another one that has the same samples: what this base
// answers would hide the other's answer (forwarding_source.h is for those).
#pragma once

#include "data/source.h"

namespace stoker::data {

/// Answers as most sources do: single images of any size, whole, with a class each, about whose storage nothing is
/// known.
class LeafSource : public Source {
 public:
  void targets(int64_t /*index*/, float* /*out*/) const override {}
  RegionOfInterest region(int64_t /*index*/) const override { return {}; }
  SampleShape fixed_shape() const override { return {}; }
  SourceMemory memory() const override { return {}; }
  const FrameSource* frames() const override { return nullptr; }
  const StoredSamples* stored() const override { return nullptr; }
};

}  // namespace stoker::data
