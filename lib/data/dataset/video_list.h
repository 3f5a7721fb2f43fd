// SPDX-License-Identifier: Apache-2.0
// Videos as lists of image files, as they are gathered. Knows nothing of folders.
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

class VideoList {
 public:
  /// Paths are below `directory`.
  VideoList(const std::string& directory, const config::DataOptions& options) : options_(options), files_(directory) {}

  /// Takes the frames of one folder, at least one, in natural order of their names. Keeps those that a clip
  /// can show.
  void add(std::vector<VideoFrame> frames, int64_t label);
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// Ends the list; what was too short goes to `notes`.
  std::shared_ptr<const Source> source(const std::vector<std::string>& class_names, ScanNotes& notes);

 private:
  const config::DataOptions options_;
  FileList files_;
  std::vector<int64_t> ends_;
  std::vector<std::string> short_videos_;
  std::vector<int64_t> chosen_;
};

}  // namespace stoker::data
