// SPDX-License-Identifier: Apache-2.0
// A copy of a file in faster storage (tmpfs), for as long as it is used.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace stoker::data {

/// Copies are named after the path, size and time of what they are a copy of, become visible whole by rename,
/// and carry a lock while a process uses them, so that runs share them and the last one removes them. What a
/// killed run left behind carries no lock: the next run takes it over, or removes it when it is unfinished or
/// of an older file.
class StagedFile {
 public:
  /// A whole copy of `path` in `directory`, made or found there; says what it did in `notes`. Throws
  /// core::Error: no_input for the file or the directory, cannot_create where there is no room, io;
  /// core::StopRequested when a stop is asked for meanwhile. Nothing is left behind then.
  static std::shared_ptr<const StagedFile> stage(const std::string& path, const std::string& directory,
                                                 std::vector<std::string>& notes);
  /// Whole copies of all `paths`, in their order. There must be room for all that are not there yet before the first is
  /// made. One line about all of them in `notes`; else as stage().
  static std::vector<std::shared_ptr<const StagedFile>> stage_all(const std::vector<std::string>& paths,
                                                                  const std::string& directory,
                                                                  std::vector<std::string>& notes);
  /// Removes the copy unless another process uses it.
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  const std::string& path() const { return path_; }  ///< of the copy

 private:
  StagedFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;  ///< carries the lock
};

}  // namespace stoker::data
