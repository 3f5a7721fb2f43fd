// SPDX-License-Identifier: Apache-2.0
// A source of videos over a source of their frames.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/source.h"

namespace stoker::data {

/// Video i consists of the samples [ends[i - 1], ends[i]) of `frames`, at least one, whose names differ only
/// behind the last slash; it has their label. `clip_frames` of a video are seen at once; 1: samples are
/// single images. With two `views` each video is half of them in high and half in low quality, in two folders of its
/// own (FrameSource::frame_count()).
std::shared_ptr<const Source> make_clip_source(std::shared_ptr<const Source> frames, std::vector<int64_t> ends,
                                               int64_t clip_frames, int64_t views = 1);

}  // namespace stoker::data
