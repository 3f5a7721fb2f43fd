// SPDX-License-Identifier: Apache-2.0
// Files that are whole or absent: every write, fsync and close is checked; reads accept regular files only.
// All functions throw core::Error with the path and the cause.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::core {

/// The whole content of a regular file. Opens without blocking, so a FIFO is an error and never a hang.
/// Throws no_input (missing, unreadable, not a regular file) or data (longer than max_bytes).
std::string read_file(const std::string& path, uint64_t max_bytes);
/// As read_file, into a buffer that is reused. Returns nothing on success, else the cause in words.
/// For samples, where a failure is a value and not an exception.
std::string read_file_into(const std::string& path, uint64_t max_bytes, std::vector<uint8_t>& buffer);

bool file_exists(const std::string& path);
uint64_t free_bytes(const std::string& directory);  ///< for an unprivileged user; 0 when unknown

/// Creates a file that must not exist, writes it piece by piece, and is only good after finish().
class CheckedWriter {
 public:
  explicit CheckedWriter(std::string path);  ///< throws cannot_create / permission / io
  ~CheckedWriter();                          ///< removes the file unless finish() returned
  CheckedWriter(const CheckedWriter&) = delete;
  CheckedWriter& operator=(const CheckedWriter&) = delete;

  void write(const void* bytes, uint64_t count);
  void finish();  ///< fsync and close, both checked

 private:
  std::string path_;
  int fd_ = -1;
  bool finished_ = false;
};

/// Replaces `path` by rename, so that a reader sees the old or the new content, never half of one.
/// `durable` also fsyncs file and directory.
void write_file_atomically(const std::string& path, std::string_view content, bool durable);
/// Appends in one write, so that readers see whole pieces; creates the file. Throws io.
void append_file(const std::string& path, std::string_view content);
/// fsync of a directory: makes renames inside it survive a power loss.
void sync_directory(const std::string& directory);
/// mkdir -p. Throws cannot_create or permission.
void make_directories(const std::string& directory);

/// An exclusive lock on `path`, held by an open file description: the kernel drops it when the process dies,
/// so there are no stale locks. The file names the holder.
class LockFile {
 public:
  /// Throws run_dir_in_use naming the holder, within a second; `what` is locked, `hint` says what can be done.
  explicit LockFile(const std::string& path, const std::string& what = "run directory",
                    const std::string& hint = "wait for it, stop it, or choose another --run-dir");
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace stoker::core
