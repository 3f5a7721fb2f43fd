// SPDX-License-Identifier: Apache-2.0
// Copies of files in faster storage (--stage-dir), for as long as they are used.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/storage/byte_reader.h"

namespace stoker::data {

/// Files, by number. The functions are called from several threads at once.
struct FilesToStage {
  std::string directory;  ///< what the files have in common: processes share copies by it
  int64_t count = 0;
  std::function<std::string_view(int64_t index)> name;  ///< below `directory`, or an absolute path
  std::function<std::string(int64_t index)> path;       ///< to be opened
  std::function<FileStamp(int64_t index)> stamp;
};

/// The copies lie in a folder of this user alone, named after the directory of the originals. It carries a lock while a
/// process uses it: runs and ranks share it, one of them copies at a time, and the last one removes it. A copy becomes
/// visible by rename, once it is compared with its original, on the storage, and has its size and time: one that has
/// other ones is of an older file, and made anew.
class StagedFiles {
 public:
  /// Copies what is not there yet, on several threads, with a summary in `note`. A file that is missing, changed
  /// since its stamp or no regular file has no copy. Throws core::Error: no_input for the folder `stage_dir`,
  /// cannot_create where there is no space for what has to be copied, io; core::StopRequested.
  static std::shared_ptr<const StagedFiles> stage(const FilesToStage& files, const std::string& stage_dir,
                                                  std::string& note);
  /// As above, of files that lie in one folder and are given by their paths.
  static std::shared_ptr<const StagedFiles> stage(const std::vector<std::string>& paths, const std::string& stage_dir,
                                                  std::string& note);
  /// Removes the copies unless another process uses them.
  ~StagedFiles();
  StagedFiles& operator=(StagedFiles&&) = delete;  // not copied, not moved

  /// Where the copy of the file of this name lies, if there is one.
  std::string copy_of(std::string_view name) const;
  /// The copy of a file that was given by its path; the path itself where there is none of the file as it is now.
  std::string copy_or_original(const std::string& path) const;

 private:
  StagedFiles(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  static std::shared_ptr<const StagedFiles> open(const std::string& path);

  const std::string path_;
  const int fd_;  ///< file descriptor of the folder; carries the lock
};

}  // namespace stoker::data
