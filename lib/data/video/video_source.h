// SPDX-License-Identifier: Apache-2.0
// A source of clips out of video files, in front of the list of the files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "config/options.h"
#include "data/source.h"
#include "data/video/video_reader.h"

namespace stoker::data {

/// A sample is a file of `files`, which lie at `place`, or with two `views` two neighbours in it: one in high quality,
/// then the same frames in low quality. Of each, options.clip_frames are seen at once. Reads nothing yet: a video that
/// is bad shows when it is read.
std::shared_ptr<const Source> make_video_source(std::shared_ptr<const Source> files,
                                                std::function<VideoPlace(int64_t index)> place,
                                                const config::DataOptions& options, int64_t views = 1);

}  // namespace stoker::data
