// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/clip_source.h"

#include "core/format.h"
#include "core/hash.h"
#include "data/forwarding_source.h"

namespace stoker::data {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// What is asked of a video and not of a frame is answered by the source behind for the first of its frames.
class ClipSource : public ForwardingSource {
 public:
  ClipSource(std::shared_ptr<const Source> frames, std::vector<int64_t> ends, int64_t clip_frames, int64_t views)
      : ForwardingSource(std::move(frames)), ends_(std::move(ends)), clip_frames_(clip_frames), views_(views) {
    ends_.shrink_to_fit();
    core::Hasher hasher;
    hasher.add(core::format("{} of {} from {}", views > 1 ? "pairs" : "clips", clip_frames, behind().fingerprint()));
    hasher.add(ends_.data(), ends_.size() * sizeof(int64_t));
    fingerprint_ = hasher.hex();
  }

  int64_t size() const override { return static_cast<int64_t>(ends_.size()); }
  std::string name(int64_t index) const override { return video_of(behind().name(first(index))); }
  std::string relative_name(int64_t index) const override { return video_of(behind().relative_name(first(index))); }
  SampleShape fixed_shape() const override {
    SampleShape shape;
    shape.frames = clip_frames_ > 1 ? clip_frames_ : 0;
    shape.views = views_;
    return shape;
  }

  SourceMemory memory() const override {
    SourceMemory memory = behind().memory();
    memory.list_bytes += static_cast<int64_t>(ends_.size() * sizeof(int64_t));
    return memory;
  }
  const FrameSource* frames() const override { return this; }

 private:
  int64_t index_behind(int64_t index) const override { return first(index); }

  int64_t frame_count(int64_t index) const override { return end(index) - first(index); }
  std::string frame_name(int64_t index, int64_t frame) const override {
    const std::string path = behind().relative_name(first(index) + frame);
    const std::string video = video_of(path);
    return video.empty() ? path : path.substr(video.size() + 1);
  }
  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override {
    return behind().read(first(index) + frame, buffer, content);
  }
  int64_t frame_bytes(int64_t index, int64_t frame) const override {
    return data::stored_bytes(behind(), first(index) + frame);
  }

  int64_t stored_bytes(int64_t index) const override {
    int64_t bytes = 0;
    for (int64_t frame = first(index); frame < end(index); ++frame) {
      const int64_t more = data::stored_bytes(behind(), frame);
      if (more < 0) return -1;
      bytes += more;
    }
    return bytes;
  }
  std::vector<int64_t> run_ends() const override { return {size()}; }

  /// The folder of a video, from the path of one of its frames.
  std::string video_of(const std::string& path) const {
    const std::string folder = folder_of(path);
    return views_ > 1 ? folder_of(folder) : folder;
  }
  int64_t first(int64_t index) const { return index == 0 ? 0 : ends_[static_cast<size_t>(index) - 1]; }
  int64_t end(int64_t index) const { return ends_[static_cast<size_t>(index)]; }

  std::vector<int64_t> ends_;
  const int64_t clip_frames_, views_;
};

}  // namespace

std::shared_ptr<const Source> make_clip_source(std::shared_ptr<const Source> frames, std::vector<int64_t> ends,
                                               int64_t clip_frames, int64_t views) {
  return std::make_shared<ClipSource>(std::move(frames), std::move(ends), clip_frames, views);
}

}  // namespace stoker::data
