// SPDX-License-Identifier: Apache-2.0
// Copies of many small files in faster storage (tmpfs), for as long as they are used.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "data/storage/sample_file.h"

namespace stoker::data {

/// Files below a folder, by number. The functions are called from several threads at once.
struct FilesToStage {
  std::string directory;  ///< what the files have in common: processes share copies by it
  int64_t count = 0;
  std::function<std::string_view(int64_t index)> name;  ///< below `directory`, or an absolute path
  std::function<std::string(int64_t index)> path;       ///< to be opened
  std::function<FileStamp(int64_t index)> stamp;
};

/// The copies lie in one folder, named after the path of the folder that they are copies of. It carries a lock while a
/// process uses it: runs share it, one of them copies at a time, and the last one removes it. A copy becomes visible
/// whole, by rename, with size and time of its original. What a killed run left behind is taken over as far as these
/// are still right.
class StagedFolder {
 public:
  /// Copies what is not there yet, on several threads, and says in `note` what it did. A file that is missing, changed
  /// since its stamp or no regular file has no copy. Throws core::Error: no_input for the folder `stage_dir`,
  /// cannot_create where there is no room for what has to be copied, io; core::StopRequested.
  static std::shared_ptr<const StagedFolder> stage(const FilesToStage& files, const std::string& stage_dir,
                                                   std::string& note);
  /// Removes the copies unless another process uses them.
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  /// Where the copy of the file of this name lies, if there is one.
  std::string copy_of(std::string_view name) const;

 private:
  StagedFolder(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  static std::shared_ptr<const StagedFolder> open(const std::string& path);

  const std::string path_;
  const int fd_;  ///< of the folder; carries the lock
};

}  // namespace stoker::data
