// SPDX-License-Identifier: Apache-2.0
#include "data/storage/stage_room.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/format.h"
#include "core/open_retrying.h"
#include "core/system/file.h"
#include "core/system/file_system.h"
#include "core/system/machine.h"

namespace stoker::data {
namespace {

/// Bytes that copies in `directory` may take; in memory no more than is free of that.
uint64_t room_in(const std::string& directory) {
  const uint64_t on_storage = core::free_bytes(directory);
  struct statfs info {};
  if (::statfs(directory.c_str(), &info) != 0 || info.f_type != TMPFS_MAGIC) return on_storage;
  const int64_t memory = core::read_machine_facts().ram_available_bytes;
  return memory > 0 ? std::min(on_storage, static_cast<uint64_t>(memory)) : on_storage;
}

}  // namespace

std::string size_text(uint64_t bytes) { return core::bytes_text(static_cast<double>(bytes)); }

std::string resolved_path(const std::string& path) {
  char* const resolved = ::realpath(path.c_str(), nullptr);
  std::string text = resolved == nullptr ? path : resolved;
  std::free(resolved);
  return text;
}

std::vector<std::string> copies_in(const std::string& directory, const std::string& prefix) {
  std::vector<std::string> found;
  std::vector<core::DirectoryEntry> entries;
  core::posix_file_system().list(directory, entries);  // a folder that cannot be listed has none
  for (const core::DirectoryEntry& entry : entries) {
    if (entry.name.rfind(prefix, 0) == 0) found.push_back(directory + "/" + entry.name);
  }
  return found;
}

void remove_unused_copy(const std::string& path) {
  const int fd = core::open_retrying(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  struct stat info {};
  if (::fstat(fd, &info) == 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;  // what cannot be removed stays
    if (S_ISREG(info.st_mode)) ::unlink(path.c_str());
    if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid()) std::filesystem::remove_all(path, ignored);
  }
  ::close(fd);
}

void require_stage_folder(const std::string& directory) {
  if (std::filesystem::is_directory(directory)) return;
  throw core::Error(core::ErrorKind::no_input, core::format("--stage-dir {} is no folder", core::printable(directory)),
                    "name one in memory, such as /dev/shm");
}

void require_stage_room(uint64_t bytes, const std::string& what, const std::string& directory) {
  if (room_in(directory) >= bytes) return;
  for (const std::string& unused : copies_in(directory, kStagePrefix)) remove_unused_copy(unused);
  const uint64_t room = room_in(directory);
  if (room >= bytes) return;
  throw core::Error(core::ErrorKind::cannot_create,
                    core::format("{} has room for {}, but {} has {}", core::printable(directory), size_text(room), what,
                                 size_text(bytes)),
                    "choose another --stage-dir, free some room there, or leave --stage-dir out");
}

}  // namespace stoker::data
