// SPDX-License-Identifier: Apache-2.0
// Video files as they are gathered, alone or in pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/source.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {

class VideoFiles {
 public:
  /// Paths are below `directory`.
  VideoFiles(std::string directory, const config::DataOptions& options)
      : directory_(std::move(directory)), options_(options) {}

  void add(const std::string& path, int64_t label, const FileStamp& stamp) { files_.push_back({path, label, stamp}); }
  int64_t size() const { return static_cast<int64_t>(files_.size()); }  ///< files
  /// Ends the list. Where files are called hq and lq, those of a folder are one sample; throws Error{data} where one
  /// lacks its partner, and where some videos are pairs and others are not.
  std::shared_ptr<const Source> source(const std::vector<std::string>& class_names, ScanNotes& notes);

 private:
  struct File {
    std::string path;
    int64_t label;
    FileStamp stamp;
  };
  std::vector<File> paired() const;
  std::string shown(const std::string& path) const;

  const std::string directory_;
  const config::DataOptions options_;
  std::vector<File> files_;
};

/// Names in `directory` that are those of videos, sorted bytewise.
std::vector<std::string> video_names_in(const std::string& directory);

}  // namespace stoker::data
