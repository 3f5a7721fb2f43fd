// SPDX-License-Identifier: Apache-2.0
#include "data/cache/frame_list.h"

#include <algorithm>

#include "data/forwarding_source.h"
#include "data/leaf_source.h"

namespace stoker::data {
namespace {

/// Where the frames of each video begin in the list, and behind the last one.
std::vector<int64_t> starts_of(const Source& videos) {
  std::vector<int64_t> starts = {0};
  for (int64_t i = 0; i < videos.size(); ++i) starts.push_back(starts.back() + videos.frames()->frame_count(i));
  return starts;
}

/// No ForwardingSource: a sample is one frame, and what holds for a video (its shape, its memory) does not for a frame.
class FrameList : public LeafSource, private StoredSamples {
 public:
  explicit FrameList(std::shared_ptr<const Source> videos) : videos_(std::move(videos)), starts_(starts_of(*videos_)) {
    class_names_ = videos_->class_names();
    fingerprint_ = "frames of " + videos_->fingerprint();
  }

  int64_t size() const override { return starts_.back(); }
  int64_t label(int64_t index) const override { return videos_->label(place(index).video); }
  std::string name(int64_t index) const override { return named(videos_->name(place(index).video), index); }
  std::string relative_name(int64_t index) const override {
    return named(videos_->relative_name(place(index).video), index);
  }
  const StoredSamples* stored() const override { return this; }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    const Place at = place(index);
    return videos_->frames()->read_frame(at.video, at.frame, buffer, content);
  }
  int64_t stored_bytes(int64_t index) const override {
    const Place at = place(index);
    return videos_->frames()->frame_bytes(at.video, at.frame);
  }
  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read(index, buffer, content);
  }
  std::vector<int64_t> run_ends() const override { return {size()}; }

 private:
  struct Place {
    int64_t video, frame;
  };
  Place place(int64_t index) const {
    const int64_t video = std::upper_bound(starts_.begin(), starts_.end(), index) - starts_.begin() - 1;
    return {video, index - starts_[static_cast<size_t>(video)]};
  }
  std::string named(const std::string& video, int64_t index) const {
    const Place at = place(index);
    return video + "/" + videos_->frames()->frame_name(at.video, at.frame);
  }

  const std::shared_ptr<const Source> videos_;
  const std::vector<int64_t> starts_;
};

/// Videos whose frames are read from another source; all else is theirs.
class VideosOfFrames : public ForwardingSource {
 public:
  VideosOfFrames(std::shared_ptr<const Source> videos, std::shared_ptr<const Source> frames)
      : ForwardingSource(std::move(videos)), frames_(std::move(frames)), starts_(starts_of(behind())) {}

  SourceMemory memory() const override {
    SourceMemory memory = behind().memory();
    memory.cached_bytes = frames_->memory().cached_bytes;
    return memory;
  }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read_frame(index, 0, buffer, content);
  }

 private:
  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override {
    return frames_->read(starts_[static_cast<size_t>(index)] + frame, buffer, content);
  }

  const std::shared_ptr<const Source> frames_;
  const std::vector<int64_t> starts_;
};

}  // namespace

std::shared_ptr<const Source> make_frame_list(std::shared_ptr<const Source> videos) {
  return std::make_shared<FrameList>(std::move(videos));
}

std::shared_ptr<const Source> with_frames_from(std::shared_ptr<const Source> videos,
                                               std::shared_ptr<const Source> frames) {
  return std::make_shared<VideosOfFrames>(std::move(videos), std::move(frames));
}

}  // namespace stoker::data
