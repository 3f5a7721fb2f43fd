// SPDX-License-Identifier: Apache-2.0
#include "data/cache/frame_list.h"

#include <algorithm>

namespace stoker::data {
namespace {

/// Where the frames of each video begin in the list, and behind the last one.
std::vector<int64_t> starts_of(const Source& videos) {
  std::vector<int64_t> starts = {0};
  for (int64_t i = 0; i < videos.size(); ++i) starts.push_back(starts.back() + videos.frame_count(i));
  return starts;
}

class FrameList : public Source {
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
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    const Place at = place(index);
    return videos_->read_frame(at.video, at.frame, buffer, content);
  }
  int64_t stored_bytes(int64_t index) const override {
    const Place at = place(index);
    return videos_->frame_bytes(at.video, at.frame);
  }

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
    return video + "/" + videos_->frame_name(at.video, at.frame);
  }

  const std::shared_ptr<const Source> videos_;
  const std::vector<int64_t> starts_;
};

class VideosOfFrames : public Source {
 public:
  VideosOfFrames(std::shared_ptr<const Source> videos, std::shared_ptr<const Source> frames)
      : videos_(std::move(videos)), frames_(std::move(frames)), starts_(starts_of(*videos_)) {
    class_names_ = videos_->class_names();
    target_names_ = videos_->target_names();
    fingerprint_ = videos_->fingerprint();
  }

  int64_t size() const override { return videos_->size(); }
  int64_t label(int64_t index) const override { return videos_->label(index); }
  void targets(int64_t index, float* out) const override { videos_->targets(index, out); }
  FaceBox face(int64_t index) const override { return videos_->face(index); }
  std::string name(int64_t index) const override { return videos_->name(index); }
  std::string relative_name(int64_t index) const override { return videos_->relative_name(index); }
  SampleShape fixed_shape() const override { return videos_->fixed_shape(); }
  int64_t frame_count(int64_t index) const override { return videos_->frame_count(index); }
  std::string frame_name(int64_t index, int64_t frame) const override { return videos_->frame_name(index, frame); }
  int64_t frame_bytes(int64_t index, int64_t frame) const override { return videos_->frame_bytes(index, frame); }
  std::vector<int64_t> run_ends() const override { return videos_->run_ends(); }
  int64_t list_bytes() const override { return videos_->list_bytes(); }
  int64_t stored_bytes(int64_t index) const override { return videos_->stored_bytes(index); }
  int64_t cached_bytes() const override { return frames_->cached_bytes(); }

  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override {
    return frames_->read(starts_[static_cast<size_t>(index)] + frame, buffer, content);
  }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read_frame(index, 0, buffer, content);
  }
  std::string read_head(int64_t index, int64_t bytes, std::vector<uint8_t>& buffer,
                        SampleContent& content) const override {
    return videos_->read_head(index, bytes, buffer, content);
  }

 private:
  const std::shared_ptr<const Source> videos_, frames_;
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
