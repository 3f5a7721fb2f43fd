// SPDX-License-Identifier: Apache-2.0
#include "data/video/video_source.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "data/clip_frames.h"
#include "data/video/frame_boxes.h"

namespace stoker::data {
namespace {

/// The indices of files, each read when it is first needed and kept.
class VideoIndices {
 public:
  explicit VideoIndices(int64_t files) : indices_(static_cast<size_t>(files)) {}

  /// No lock is held while `read` runs: two threads may read the same one at once, and one of both is kept.
  std::shared_ptr<const VideoIndex> at(int64_t file, const std::function<VideoIndex()>& read) {
    const auto i = static_cast<size_t>(file);
    std::mutex& mutex = mutexes_[i % mutexes_.size()];
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (indices_[i] != nullptr) return indices_[i];
    }
    auto index = std::make_shared<const VideoIndex>(read());
    const std::lock_guard<std::mutex> lock(mutex);
    if (indices_[i] == nullptr) {
      indices_[i] = std::move(index);
      bytes_ += indices_[i]->memory_bytes() + static_cast<int64_t>(sizeof(VideoIndex));
    }
    return indices_[i];
  }
  int64_t memory_bytes() const {
    return bytes_ + static_cast<int64_t>(indices_.capacity() * sizeof(std::shared_ptr<const VideoIndex>));
  }

 private:
  std::array<std::mutex, 64> mutexes_;
  std::vector<std::shared_ptr<const VideoIndex>> indices_;
  std::atomic<int64_t> bytes_{0};
};

/// The reader of a thread, with the file that is open in it.
struct ThreadReader {
  VideoReader reader;
  uint64_t source = 0;  ///< number of the source; 0: none
  int64_t file = -1;
};

class VideoSource : public ForwardingSource {
 public:
  VideoSource(std::shared_ptr<const Source> files, std::function<VideoPlace(int64_t)> place,
              const config::DataOptions& options, int64_t views)
      : ForwardingSource(std::move(files)),
        place_(std::move(place)),
        clip_frames_(options.clip_frames),
        views_(views),
        indices_(behind().size()) {
    static std::atomic<uint64_t> sources{0};
    number_ = ++sources;
    limits_.max_megapixels = options.max_image_megapixels;
    core::Hasher hasher;
    hasher.add(
        core::format("{} of {} from videos {}", views > 1 ? "pairs" : "clips", clip_frames_, behind().fingerprint()));
    if (!options.boxes.empty()) {
      boxes_ = std::make_unique<const FrameBoxes>(options.boxes);
      find_boxes();
      hasher.add(boxes_->digest());
    }
    fingerprint_ = hasher.hex();
  }

  int64_t size() const override { return behind().size() / views_; }
  std::string name(int64_t index) const override { return sample_name(behind().name(index_behind(index))); }
  std::string relative_name(int64_t index) const override {
    return sample_name(behind().relative_name(index_behind(index)));
  }
  RegionOfInterest region(int64_t /*index*/) const override { return {}; }
  SampleShape fixed_shape() const override { return clip_shape(clip_frames_, views_); }
  SourceMemory memory() const override {
    SourceMemory memory = behind().memory();
    memory.list_bytes += indices_.memory_bytes() + (boxes_ == nullptr ? 0 : boxes_->memory_bytes());
    return memory;
  }
  const FrameSource* frames() const override { return this; }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read_frame(index, 0, buffer, content);
  }

 private:
  int64_t index_behind(int64_t index) const override { return index * views_; }

  /// The path of the file; the folder of both of a pair.
  std::string sample_name(const std::string& path) const {
    const size_t slash = path.find_last_of('/');
    return views_ == 1 ? path : slash == std::string::npos ? "" : path.substr(0, slash);
  }

  /// Those of each file, or of the folder of a pair. Throws Error{data} where no file has any.
  void find_boxes() {
    bool has_any = false;
    for (int64_t file = 0; file < behind().size(); ++file) {
      const std::string path = behind().name(file);
      const std::vector<FrameBox>* found = boxes_->of(path);
      if (found == nullptr && views_ > 1) found = boxes_->of(sample_name(path));
      boxes_of_files_.push_back(found);
      has_any = has_any || found != nullptr;
    }
    if (has_any || boxes_of_files_.empty()) return;
    throw core::Error(core::ErrorKind::data,
                      core::format("{} has no box of any video, such as {}", core::printable(boxes_->path()),
                                   core::printable(behind().name(0))),
                      "its paths are relative to the folder that it lies in; other videos need a file of their own: "
                      "--boxes");
  }

  std::shared_ptr<const VideoIndex> index_at(int64_t file) const {
    return indices_.at(file, [&] { return VideoReader::index_of(place_(file), limits_); });
  }

  /// In each view; of a bad video 1, whose reading gives the cause.
  int64_t frames_of(int64_t index) const {
    int64_t frames = index_at(index_behind(index))->frames;
    if (views_ > 1) frames = std::min(frames, index_at(index_behind(index) + 1)->frames);
    return std::max<int64_t>(1, frames);
  }
  int64_t frame_count(int64_t index) const override {
    try {
      return views_ * frames_of(index);
    } catch (const core::Error& error) {
      if (error.kind() != core::ErrorKind::io) throw;
      return views_;  // the storage fails: reading ends the run
    }
  }
  std::string frame_name(int64_t index, int64_t frame) const override {
    const int64_t frames = frame_count(index) / views_;
    const char* const view = views_ == 1 ? "" : frame < frames ? "hq " : "lq ";
    return core::format("{}frame {}", view, frame % frames + 1);
  }

  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>& buffer,
                         SampleContent& content) const override {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    const int64_t frames = frames_of(index), file = index_behind(index) + frame / frames;
    if (views_ > 1) {
      const auto high = index_at(index_behind(index)), low = index_at(index_behind(index) + 1);
      if (high->cause.empty() && low->cause.empty() && high->frames != low->frames) {
        return core::format("its video in high quality has {} frames, that in low quality {}", high->frames,
                            low->frames);
      }
    }
    int height = 0, width = 0;
    VideoReader& reader = reader_of(file);
    if (std::string cause = reader.read(frame % frames, buffer, height, width); !cause.empty()) return cause;
    if (boxes_ != nullptr) {
      const std::vector<FrameBox>* const boxes = boxes_of_files_[static_cast<size_t>(file)];
      if (boxes == nullptr) return "has no box in " + core::printable(boxes_->path());
      if (std::string cause = crop_to_box(nearest_box(*boxes, frame % frames), buffer, height, width); !cause.empty()) {
        return cause;
      }
    }
    content.set_pixels(buffer.data(), image_shape(height, width, 3));
    content.decode_nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    return "";
  }

  /// The reader of this thread, with a file in it.
  VideoReader& reader_of(int64_t file) const {
    thread_local ThreadReader open;
    if (open.source != number_ || open.file != file) {
      open.source = 0;
      open.reader.take(place_(file), limits_, index_at(file));
      open.source = number_;
      open.file = file;
    }
    return open.reader;
  }

  /// A frame is no file.
  int64_t frame_bytes(int64_t /*index*/, int64_t /*frame*/) const override { return -1; }
  int64_t stored_bytes(int64_t index) const override {
    int64_t bytes = 0;
    for (int64_t view = 0; view < views_; ++view) {
      const int64_t more = data::stored_bytes(behind(), index_behind(index) + view);
      if (more < 0) return -1;
      bytes += more;
    }
    return bytes;
  }
  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read(index, buffer, content);
  }
  std::vector<int64_t> run_ends() const override { return {size()}; }

  const std::function<VideoPlace(int64_t)> place_;
  const int64_t clip_frames_, views_;
  VideoLimits limits_;
  std::unique_ptr<const FrameBoxes> boxes_;                   ///< null: whole frames are seen
  std::vector<const std::vector<FrameBox>*> boxes_of_files_;  ///< [files]; null: there are none
  uint64_t number_ = 0;
  mutable VideoIndices indices_;
};

}  // namespace

std::shared_ptr<const Source> make_video_source(std::shared_ptr<const Source> files,
                                                std::function<VideoPlace(int64_t)> place,
                                                const config::DataOptions& options, int64_t views) {
  return std::make_shared<VideoSource>(std::move(files), std::move(place), options, views);
}

}  // namespace stoker::data
