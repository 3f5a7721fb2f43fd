// SPDX-License-Identifier: Apache-2.0
// The calls by which a run changes its files, as an interface: checkpoints and the files of a run are written through
// it, so that a test can let any single call fail, or lose what was not synced. Programs use the POSIX one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stoker::core {

/// An open file. Every call returns 0 or an errno. Destruction closes the file without a check.
class File {
 public:
  virtual ~File() = default;

  /// Writes all of `count` bytes behind what was written before. After an error a part of them may be in the file.
  virtual int write(const void* bytes, uint64_t count) = 0;
  /// Reads up to `count` bytes behind what was read before; `got` is 0 at the end of the file.
  virtual int read(void* bytes, uint64_t count, uint64_t& got) = 0;
  virtual int size(uint64_t& bytes) = 0;
  /// Cuts the file to `bytes`.
  virtual int truncate(uint64_t bytes) = 0;
  /// When this returns 0 the content survives a power loss. The file's name may need sync_directory().
  virtual int sync() = 0;
  /// The last call. Some file systems report only here that a write failed.
  virtual int close() = 0;
};

/// The behaviour of open() with a path that is a symbolic link.
enum class Links { follow, refuse };

struct DirectoryEntry {
  std::string name;
  bool is_link = false;
};

/// Every call returns 0 or an errno; a call that a signal interrupts is repeated. Safe from any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  /// Opens a new file for writing; EEXIST when anything has that name, a dangling link included.
  virtual int create(const std::string& path, std::unique_ptr<File>& file) = 0;
  /// Opens a regular file for reading and appending, and creates it when it is missing; ELOOP for a link, EINVAL for
  /// anything else that is not a regular file.
  virtual int append(const std::string& path, std::unique_ptr<File>& file) = 0;
  /// Opens a regular file for reading; ELOOP for a link that is refused, EISDIR for a directory, EINVAL for anything
  /// else that is not a regular file.
  virtual int open(const std::string& path, Links links, std::unique_ptr<File>& file) = 0;

  virtual int make_directory(const std::string& path) = 0;
  /// Entries in no order, without "." and "..".
  virtual int list(const std::string& directory, std::vector<DirectoryEntry>& entries) = 0;
  /// When this returns 0 the names in the directory survive a power loss, as far as the file system can promise it.
  virtual int sync_directory(const std::string& directory) = 0;
  /// Gives `from` the name `to` in one step, in place of a file or an empty directory there.
  virtual int rename(const std::string& from, const std::string& to) = 0;
  /// Lets two existing names change places in one step; EINVAL or ENOSYS where the file system cannot.
  virtual int exchange(const std::string& one, const std::string& other) = 0;
  /// Makes a symbolic link `path` to `target`.
  virtual int link(const std::string& target, const std::string& path) = 0;
  /// Removes a file, a link or an empty directory.
  virtual int remove(const std::string& path) = 0;
};

/// The kernel's files. Never destroyed.
FileSystem& posix_file_system();

}  // namespace stoker::core
