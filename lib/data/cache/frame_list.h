// SPDX-License-Identifier: Apache-2.0
// The frames of a source of videos as samples of their own, and back again: what works on images, such as a
// cache, then works on frames.
#pragma once

#include <memory>

#include "data/source.h"

namespace stoker::data {

/// All frames of all samples of `videos`, one after another.
std::shared_ptr<const Source> make_frame_list(std::shared_ptr<const Source> videos);

/// `videos`, of which frames are read from `frames`: its frame list, or one in front of it.
std::shared_ptr<const Source> with_frames_from(std::shared_ptr<const Source> videos,
                                               std::shared_ptr<const Source> frames);

}  // namespace stoker::data
