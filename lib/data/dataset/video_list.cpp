// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/video_list.h"

#include <algorithm>

#include "core/format.h"
#include "data/clip_frames.h"
#include "data/dataset/clip_source.h"
#include "data/storage/natural_order.h"

namespace stoker::data {

void VideoList::add(std::vector<VideoFrame> frames, int64_t label) {
  std::sort(frames.begin(), frames.end(),
            [](const VideoFrame& a, const VideoFrame& b) { return comes_before(a.path, b.path); });
  const auto available = static_cast<int64_t>(frames.size());
  const int64_t wanted = options_.clip_frames;
  const bool strides = options_.frame_sampling == config::FrameSampling::stride;
  const int64_t needed = (wanted - 1) * (strides ? options_.frame_stride : 1) + 1;
  if (available < needed) {
    const std::string& path = frames.front().path;
    short_videos_.push_back(files_.absolute(path.substr(0, path.find_last_of('/'))));
  }
  if (strides || available <= wanted) {
    for (const VideoFrame& frame : frames) files_.add(frame.path, label, frame.stamp);
  } else {  // the others are never looked at
    core::Rng rng(0, core::RngPurpose::clip_frames, 0, 0);
    choose_frames({options_.frame_sampling, options_.frame_stride, false}, available, wanted, rng, chosen_);
    for (const int64_t i : chosen_) {
      const VideoFrame& frame = frames[static_cast<size_t>(i)];
      files_.add(frame.path, label, frame.stamp);
    }
  }
  ends_.push_back(files_.size());
}

std::shared_ptr<const Source> VideoList::source(const std::vector<std::string>& class_names, ScanNotes& notes) {
  for (const std::string& video : short_videos_) {
    notes.count(core::format("videos too short for {} frames{}, whose last frame is repeated", options_.clip_frames,
                             options_.frame_sampling == config::FrameSampling::stride && options_.frame_stride > 1
                                 ? core::format(" {} apart", options_.frame_stride)
                                 : ""),
                video);
  }
  return make_clip_source(make_file_source(std::move(files_), class_names), std::move(ends_), options_.clip_frames);
}

}  // namespace stoker::data
