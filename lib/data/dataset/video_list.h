// SPDX-License-Identifier: Apache-2.0
// Videos as lists of image files, as they are gathered.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/dataset/file_source.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

struct VideoFrame {
  std::string path;  ///< below the list's directory
  FileStamp stamp;
};

/// The frames of a video: in its folder, or in high and in low quality in the folders hq and lq there.
struct VideoFrames {
  std::string folder;  ///< below the list's directory
  std::vector<VideoFrame> plain, high, low;

  bool is_empty() const { return plain.empty() && high.empty() && low.empty(); }
};

/// Where a frame at "<video>/<name>", "<video>/hq/<name>" or "<video>/lq/<name>" belongs.
struct FramePlace {
  std::string video;  ///< may be empty
  std::vector<VideoFrame> VideoFrames::*frames;
};
FramePlace place_of_frame(const std::string& path);

class VideoList {
 public:
  /// Paths are below `directory`.
  VideoList(const std::string& directory, const config::DataOptions& options) : options_(options), files_(directory) {}

  /// Takes the frames of one video, at least one, in natural order of their names. Keeps those that a clip can show.
  /// Throws Error{data} for a frame without its partner, and where some videos are pairs and others are not.
  void add(VideoFrames video, int64_t label);
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// Ends the list; what was too short goes to `notes`.
  std::shared_ptr<const Source> source(const std::vector<std::string>& class_names, ScanNotes& notes);

 private:
  void require_same_kind(const VideoFrames& video);
  std::vector<VideoFrame> paired(const VideoFrames& video) const;

  const config::DataOptions options_;
  int64_t views_ = 0;         ///< views of every video; 0: there is none yet
  std::string first_folder_;  ///< folder of the first video
  FileList files_;
  std::vector<int64_t> ends_;
  std::vector<std::string> short_videos_;
  std::vector<int64_t> chosen_;
};

}  // namespace stoker::data
