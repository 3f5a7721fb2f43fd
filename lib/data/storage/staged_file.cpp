// SPDX-License-Identifier: Apache-2.0
#include "data/storage/staged_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/open_retrying.h"
#include "core/system/stop_signal.h"
#include "core/time/elapsed.h"
#include "data/storage/byte_reader.h"
#include "data/storage/stage_room.h"

namespace stoker::data {
namespace {

using core::Error;
using core::ErrorKind;
namespace fs = std::filesystem;

constexpr char kPart[] = ".part";

/// The making of one copy: a file beside the final name that goes away unless it is kept.
class Copying {
 public:
  Copying(const FileBytes& original, std::string final_path)
      : original_(original),
        final_path_(std::move(final_path)),
        part_path_(core::format("{}.{}{}", final_path_, ::getpid(), kPart)) {
    ::unlink(part_path_.c_str());  // of a process long gone with the same number
    fd_ = core::open_retrying(part_path_.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd_ < 0) throw core::errno_error(errno, "create", core::printable(part_path_), ErrorKind::cannot_create);
    ::flock(fd_, LOCK_EX | LOCK_NB);
  }
  ~Copying() {
    if (fd_ < 0) return;
    ::unlink(part_path_.c_str());
    ::close(fd_);
  }
  Copying(const Copying&) = delete;
  Copying& operator=(const Copying&) = delete;

  void copy_all() {
    using Clock = std::chrono::steady_clock;
    constexpr uint64_t kStep = 8 << 20;
    constexpr std::chrono::seconds kSayEvery(5);
    std::vector<uint8_t> buffer(std::min(kStep, std::max<uint64_t>(1, original_.size())));
    Clock::time_point said = Clock::now();
    for (uint64_t at = 0; at < original_.size();) {
      core::throw_if_stopped();
      const uint64_t count = std::min(kStep, original_.size() - at);
      original_.read(at, buffer.data(), count);
      write(buffer.data(), count);
      at += count;
      if (Clock::now() - said < kSayEvery) continue;
      said = Clock::now();
      core::log_info("staged    {} of {}", size_text(at), size_text(original_.size()));
    }
  }

  /// Makes the copy visible under its final name; returns its descriptor, which is the caller's.
  int keep() {
    const int64_t ns = original_.stamp().modified_ns;
    const timespec times[2] = {{0, UTIME_OMIT}, {ns / 1'000'000'000, ns % 1'000'000'000}};
    if (::futimens(fd_, times) != 0 || ::rename(part_path_.c_str(), final_path_.c_str()) != 0) {
      throw core::errno_error(errno, "create", core::printable(final_path_), ErrorKind::io);
    }
    ::flock(fd_, LOCK_SH);
    const int kept = fd_;
    fd_ = -1;
    return kept;
  }

 private:
  void write(const uint8_t* bytes, uint64_t count) {
    for (uint64_t done = 0; done < count;) {
      const ssize_t written = ::write(fd_, bytes + done, count - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw core::errno_error(errno, "write", core::printable(part_path_), ErrorKind::io);
      done += static_cast<uint64_t>(written);
    }
  }

  const FileBytes& original_;
  const std::string final_path_, part_path_;
  int fd_ = -1;
};

/// A descriptor, with its lock, of a whole copy that is still there; -1: none.
int open_copy(const std::string& path, const FileStamp& stamp) {
  const int fd = core::open_retrying(path.c_str(), O_RDONLY | O_NOFOLLOW);
  if (fd < 0) return -1;
  struct stat info {};
  const bool is_ours = ::flock(fd, LOCK_SH) == 0 && ::fstat(fd, &info) == 0 && info.st_nlink > 0 &&
                       info.st_uid == ::geteuid() && info.st_size == stamp.size &&
                       int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec == stamp.modified_ns;
  if (is_ours) return fd;
  ::close(fd);
  return -1;
}

/// With what the names of all copies of a path begin.
std::string prefix_of(const std::string& path) {
  return core::format("{}{:016x}-", kStagePrefix, core::hash64(resolved_path(path)));
}

/// The path of the copy of a file as it is now.
std::string copy_path(const FileBytes& original, const std::string& path, const std::string& directory) {
  const std::string version = core::format("{} {}", original.stamp().size, original.stamp().modified_ns);
  return core::format("{}/{}{:016x}-{}", directory, prefix_of(path), core::hash64(version),
                      fs::path(path).filename().string());
}

}  // namespace

std::vector<std::shared_ptr<const StagedFile>> StagedFile::stage_all(const std::vector<std::string>& paths,
                                                                     const std::string& directory,
                                                                     std::vector<std::string>& notes) {
  std::vector<std::shared_ptr<const StagedFile>> copies;
  if (paths.size() == 1) return {stage(paths.front(), directory, notes)};
  if (paths.empty()) return copies;
  require_stage_folder(directory);
  uint64_t all = 0, missing = 0;
  for (const std::string& path : paths) {
    const FileBytes original(path);
    all += original.size();
    if (const int fd = open_copy(copy_path(original, path, directory), original.stamp()); fd >= 0) {
      ::close(fd);
    } else {
      missing += original.size();
    }
  }
  const std::string files = core::format("{} and {} others", core::printable(paths.front()), paths.size() - 1);
  if (missing > 0) require_stage_room(missing, "what has no copy there yet of " + files, directory);
  std::vector<std::string> of_each;
  for (const std::string& path : paths) copies.push_back(stage(path, directory, of_each));
  notes.push_back(
      core::format("{} are read from copies in {} ({}, of which {} were there already), which go with the run", files,
                   core::printable(directory), size_text(all), size_text(all - missing)));
  return copies;
}

std::shared_ptr<const StagedFile> StagedFile::stage(const std::string& path, const std::string& directory,
                                                    std::vector<std::string>& notes) {
  require_stage_folder(directory);
  const FileBytes original(path);
  const std::string same_path = prefix_of(path), copy = copy_path(original, path, directory);
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (const int fd = open_copy(copy, original.stamp()); fd >= 0) {
      notes.push_back(core::format("{} is read from its copy in {}, which was there already", core::printable(path),
                                   core::printable(directory)));
      return std::shared_ptr<const StagedFile>(new StagedFile(copy, fd));
    }
    for (const std::string& leftover : copies_in(directory, same_path)) remove_unused_copy(leftover);
    require_stage_room(original.size(), core::printable(original.name()), directory);
    core::log_info("staging   {} ({}) in {}", core::printable(path), size_text(original.size()),
                   core::printable(directory));
    const auto start = std::chrono::steady_clock::now();
    Copying copying(original, copy);
    copying.copy_all();
    const int fd = copying.keep();
    struct stat info {};
    if (::fstat(fd, &info) == 0 && info.st_nlink > 0) {
      const double seconds = core::seconds_since(start);
      notes.push_back(core::format("{} is read from a copy in {} ({} in {:.1f} s), which goes with the run",
                                   core::printable(path), core::printable(directory), size_text(original.size()),
                                   seconds));
      return std::shared_ptr<const StagedFile>(new StagedFile(copy, fd));
    }
    ::close(fd);  // another process took it for unused between two locks
  }
  throw Error(ErrorKind::io, core::format("the copy {} vanishes as soon as it is made", core::printable(copy)),
              "choose a --stage-dir that no other program cleans");
}

StagedFile::~StagedFile() {
  struct stat info {
  }, now{};
  const bool is_last = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  const bool is_there = ::fstat(fd_, &info) == 0 && ::stat(path_.c_str(), &now) == 0 && info.st_ino == now.st_ino;
  if (is_last && is_there) ::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace stoker::data
