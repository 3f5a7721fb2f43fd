// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/video_list.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "data/clip_frames.h"
#include "data/source.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

// A source of videos over a source of their frames.

/// Video i consists of the samples [ends[i - 1], ends[i]) of `frames`, at least one, whose names differ only
/// behind the last slash; it has their label. `clip_frames` of a video are seen at once; 1: samples are
/// single images. With two `views` each video is half of them in high and half in low quality, in two folders of its
/// own (FrameSource::frame_count()).
std::shared_ptr<const Source> make_clip_source(std::shared_ptr<const Source> frames, std::vector<int64_t> ends,
                                               int64_t clip_frames, int64_t views = 1);

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// Requests about a video are answered by the wrapped source for the first of its frames.
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
  SampleShape fixed_shape() const override { return clip_shape(clip_frames_, views_); }

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

std::shared_ptr<const Source> make_clip_source(std::shared_ptr<const Source> frames, std::vector<int64_t> ends,
                                               int64_t clip_frames, int64_t views) {
  return std::make_shared<ClipSource>(std::move(frames), std::move(ends), clip_frames, views);
}

constexpr char kHigh[] = "hq", kLow[] = "lq";

std::string video_folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string last_part(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// The name of a frame without its extension: pairs may differ in that.
std::string stem_of(const VideoFrame& frame) {
  const std::string name = last_part(frame.path);
  return name.substr(0, name.find_last_of('.'));
}

std::map<std::string, const VideoFrame*> by_stem(const std::vector<VideoFrame>& frames) {
  std::map<std::string, const VideoFrame*> found;
  for (const VideoFrame& frame : frames) found.emplace(stem_of(frame), &frame);
  return found;
}

}  // namespace

FramePlace place_of_frame(const std::string& path) {
  const std::string folder = video_folder_of(path), name = last_part(folder);
  if (name == kHigh) return {video_folder_of(folder), &VideoFrames::high};
  if (name == kLow) return {video_folder_of(folder), &VideoFrames::low};
  return {folder, &VideoFrames::plain};
}

void VideoList::require_same_kind(const VideoFrames& video) {
  const bool is_pair = !video.high.empty() || !video.low.empty();
  if (is_pair && !video.plain.empty()) {
    throw core::Error(core::ErrorKind::data,
                      core::format("{} lies beside the folders {} and {} of a video",
                                   core::printable(files_.absolute(video.plain.front().path)), kHigh, kLow),
                      "a video has its frames in its folder, or each of them in both of these folders");
  }
  if (views_ == 0) {
    views_ = is_pair ? 2 : 1;
    first_folder_ = video.folder;
  }
  if (is_pair == (views_ == 2)) return;
  throw core::Error(core::ErrorKind::data,
                    core::format("{} has the folders {} and {} of a pair, but {} has not",
                                 core::printable(files_.absolute(is_pair ? video.folder : first_folder_)), kHigh, kLow,
                                 core::printable(files_.absolute(is_pair ? first_folder_ : video.folder))),
                    "give every video both folders, or none");
}

/// Frames in high quality in natural order, then their partners in the same order.
std::vector<VideoFrame> VideoList::paired(const VideoFrames& video) const {
  const auto high = by_stem(video.high), low = by_stem(video.low);
  const auto require_partners = [&](const std::vector<VideoFrame>& frames, const auto& own, const auto& others,
                                    const char* other_folder) {
    for (const VideoFrame& frame : frames) {
      if (own.at(stem_of(frame)) != &frame) {
        throw core::Error(core::ErrorKind::data,
                          core::format("{} and {} are frames of one name", core::printable(files_.absolute(frame.path)),
                                       core::printable(files_.absolute(own.at(stem_of(frame))->path))),
                          "a frame has one partner: remove one of them");
      }
      if (others.count(stem_of(frame)) > 0) continue;
      const std::string missing = core::format("{}/{}/{}", video.folder, other_folder, last_part(frame.path));
      throw core::Error(core::ErrorKind::data,
                        core::format("{} is missing, the partner of {}", core::printable(files_.absolute(missing)),
                                     core::printable(files_.absolute(frame.path))),
                        core::format("the folders {} and {} of a video hold the same frames, by their names without "
                                     "extension: add it, or remove both",
                                     kHigh, kLow));
    }
  };
  require_partners(video.high, high, low, kLow);
  require_partners(video.low, low, high, kHigh);
  std::vector<VideoFrame> frames = video.high;
  std::sort(frames.begin(), frames.end(),
            [](const VideoFrame& a, const VideoFrame& b) { return comes_before(a.path, b.path); });
  const size_t count = frames.size();
  for (size_t i = 0; i < count; ++i) frames.push_back(*low.at(stem_of(frames[i])));
  return frames;
}

void VideoList::add(VideoFrames video, int64_t label) {
  require_same_kind(video);
  std::vector<VideoFrame> frames = views_ == 2 ? paired(video) : std::move(video.plain);
  if (views_ == 1) {
    std::sort(frames.begin(), frames.end(),
              [](const VideoFrame& a, const VideoFrame& b) { return comes_before(a.path, b.path); });
  }
  const auto available = static_cast<int64_t>(frames.size()) / views_;
  const int64_t wanted = options_.clip_frames;
  const bool strides = options_.frame_sampling == config::FrameSampling::stride;
  const int64_t needed = (wanted - 1) * (strides ? options_.frame_stride : 1) + 1;
  if (available < needed) short_videos_.push_back(files_.absolute(video.folder));
  const bool keeps_all = strides || available <= wanted;  // else the others are never looked at
  if (!keeps_all) {
    core::Rng rng(0, core::RngPurpose::clip_frames, 0, 0);
    choose_frames({options_.frame_sampling, options_.frame_stride, false}, available, wanted, rng, chosen_);
  }
  for (int64_t view = 0; view < views_; ++view) {
    const auto keep = [&](int64_t i) {
      const VideoFrame& frame = frames[static_cast<size_t>(view * available + i)];
      files_.add(frame.path, label, frame.stamp);
    };
    if (!keeps_all) std::for_each(chosen_.begin(), chosen_.end(), keep);
    for (int64_t i = 0; keeps_all && i < available; ++i) keep(i);
  }
  ends_.push_back(files_.size());
}

std::shared_ptr<const Source> VideoList::source(const std::vector<std::string>& class_names, ScanNotes& notes) {
  if (!options_.boxes.empty()) {
    throw core::Error(core::ErrorKind::config, "--boxes is for video files, and these are folders of frames",
                      "write the frames cropped, or give the files that they come from");
  }
  for (const std::string& video : short_videos_) {
    notes.count(core::format("videos too short for {} frames{}, whose last frame is repeated", options_.clip_frames,
                             options_.frame_sampling == config::FrameSampling::stride && options_.frame_stride > 1
                                 ? core::format(" {} apart", options_.frame_stride)
                                 : ""),
                video);
  }
  files_.stage(options_.stage_dir, notes);
  return make_clip_source(make_frame_source(std::move(files_), class_names), std::move(ends_), options_.clip_frames,
                          std::max<int64_t>(1, views_));
}

}  // namespace stoker::data
