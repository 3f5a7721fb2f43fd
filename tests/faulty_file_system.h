// SPDX-License-Identifier: Apache-2.0
// A file system that fails on purpose: one call returns an error, or the power goes after a call and whatever was not
// synced is lost. It works on real folders, so that what is left can be opened by the code under test.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/system/file_system.h"

namespace stoker::fixtures {

/// The effect of a power loss on a change that was not synced.
enum class Unsynced {
  kept,           ///< everything stays, as when a process is killed and the machine runs on
  lost,           ///< contents and names go back to what was synced last
  names_outlive,  ///< names are as they were last, contents go back: a new file may be empty
};

/// Counts the calls that change or read files, those of open files included. Call numbers begin with 1.
class FaultyFileSystem : public core::FileSystem {
 public:
  /// `root` is an existing folder; everything that is in it counts as synced. Paths outside it are not tracked.
  explicit FaultyFileSystem(const std::string& root);
  ~FaultyFileSystem() override;

  int64_t calls() const { return calls_; }
  /// The call with this number returns `error_number`, without an effect; a write has written half of its bytes.
  void fail_call(int64_t number, int error_number);
  /// The power goes after the call with this number: every later call returns EIO and has no effect.
  void cut_power_after(int64_t number);
  /// exchange() returns EINVAL from now on, as on file systems that lack it.
  void refuse_exchange() { can_exchange_ = false; }
  /// Turns `root` into what is found when the machine runs again. Until then the file system must not be used again.
  void restart(Unsynced unsynced);

  int create(const std::string& path, std::unique_ptr<core::File>& file) override;
  int append(const std::string& path, std::unique_ptr<core::File>& file) override;
  int open(const std::string& path, core::Links links, std::unique_ptr<core::File>& file) override;
  int make_directory(const std::string& path) override;
  int list(const std::string& directory, std::vector<core::DirectoryEntry>& entries) override;
  int sync_directory(const std::string& directory) override;
  int rename(const std::string& from, const std::string& to) override;
  int exchange(const std::string& one, const std::string& other) override;
  int link(const std::string& target, const std::string& path) override;
  int remove(const std::string& path) override;

 private:
  struct Node;
  class TrackedFile;

  bool has_power() const;
  /// Counts a call. Returns the errno with which it must fail, or 0.
  int begin_call();
  static std::shared_ptr<Node> scan(const std::string& path);
  static void write_out(const Node& node, const std::string& path, Unsynced unsynced);
  /// The directory that holds `path`; null outside root.
  Node* parent_of(const std::string& path) const;
  Node* find(const std::string& path) const;

  std::string root_path_;
  std::shared_ptr<Node> root_;
  core::FileSystem& real_;
  int64_t calls_ = 0;
  int64_t failing_call_ = -1, last_call_ = -1;
  int error_number_ = 0;
  bool can_exchange_ = true;
};

}  // namespace stoker::fixtures
