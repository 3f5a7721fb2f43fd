// SPDX-License-Identifier: Apache-2.0
#include "data/storage/staged_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/open_retrying.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "core/system/worker_pool.h"
#include "core/time/elapsed.h"
#include "data/storage/stage_room.h"

namespace stoker::data {
namespace {

using core::ErrorKind;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr char kMakerLock[] = "/maker";
constexpr char kUnfinished[] = ".part";
constexpr uint64_t kPage = 4096;  ///< what a file takes is a multiple of this

int64_t time_of(const struct stat& info) { return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec; }

bool is_whole_copy(const std::string& path, const FileStamp& stamp) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == stamp.size &&
         time_of(info) == stamp.modified_ns;
}

/// Only one process at a time holds it, of those that share a folder of copies.
class MakerLock {
 public:
  explicit MakerLock(const std::string& path)
      : fd_(core::open_retrying(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600)) {
    if (fd_ < 0) throw core::errno_error(errno, "create", core::printable(path), ErrorKind::cannot_create);
  }
  ~MakerLock() { ::close(fd_); }
  MakerLock(const MakerLock&) = delete;
  MakerLock& operator=(const MakerLock&) = delete;

  /// Waits for the others. Throws core::StopRequested.
  void acquire() const {
    for (bool said = false; ::flock(fd_, LOCK_EX | LOCK_NB) != 0;) {
      core::throw_if_stopped();
      if (!said) core::log_info("staging   waits for another process, which copies the same files");
      said = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

 private:
  const int fd_;
};

/// Writes `path`, which is visible whole or not at all. Throws core::Error.
void write_copy(const std::string& path, const std::string& part, const uint8_t* bytes, const FileStamp& stamp) {
  const int fd = core::open_retrying(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  if (fd < 0) throw core::errno_error(errno, "create", core::printable(part), ErrorKind::cannot_create);
  int failure = 0;
  for (int64_t done = 0; done < stamp.size && failure == 0;) {
    const ssize_t written = ::write(fd, bytes + done, static_cast<size_t>(stamp.size - done));
    if (written < 0 && errno != EINTR) failure = errno;
    if (written > 0) done += written;
  }
  const timespec times[2] = {{0, UTIME_OMIT}, {stamp.modified_ns / 1'000'000'000, stamp.modified_ns % 1'000'000'000}};
  if (failure == 0 && ::futimens(fd, times) != 0) failure = errno;
  struct stat info {};
  const bool keeps_time = failure != 0 || (::fstat(fd, &info) == 0 && time_of(info) == stamp.modified_ns);
  ::close(fd);
  if (failure == 0 && keeps_time && ::rename(part.c_str(), path.c_str()) == 0) return;
  if (failure == 0) failure = errno;
  ::unlink(part.c_str());
  if (keeps_time) throw core::errno_error(failure, "write", core::printable(part), ErrorKind::io);
  throw core::Error(ErrorKind::io, core::printable(part) + " does not keep the time of its original",
                    "choose a --stage-dir on storage that keeps nanoseconds, such as /dev/shm");
}

/// The copying of files into a folder that this process makes.
class Making {
 public:
  Making(const FilesToStage& files, const StagedFolder& folder, std::string path)
      : files_(files), folder_(folder), path_(std::move(path)) {
    const int64_t cpus = core::read_machine_facts().cpus;
    threads_ = std::clamp<int64_t>(2 * cpus, 4, 32);  // they wait for slow storage most of the time
  }

  /// Finds out which files have no copy.
  void look() {
    std::vector<uint8_t> lacks(static_cast<size_t>(files_.count));
    core::for_each_index(files_.count, threads_, [&] {
      return [&](int64_t i) {
        const FileStamp stamp = files_.stamp(i);
        lacks[static_cast<size_t>(i)] = stamp.size >= 0 && !is_whole_copy(folder_.copy_of(files_.name(i)), stamp);
      };
    });
    for (int64_t i = 0; i < files_.count; ++i) {
      const auto size = static_cast<uint64_t>(std::max<int64_t>(0, files_.stamp(i).size));
      bytes_ += size;
      if (lacks[static_cast<size_t>(i)] == 0) continue;
      missing_.push_back(i);
      missing_bytes_ += size;
      room_ += (size + kPage - 1) / kPage * kPage;
    }
  }

  /// Throws core::Error{cannot_create} with the sizes.
  void require_room(const std::string& stage_dir) const {
    if (missing_.empty()) return;
    require_stage_room(
        room_, core::format("what has no copy there yet of {} in {}", files_text(), core::printable(files_.directory)),
        stage_dir);
  }

  void copy_missing(const std::string& stage_dir) {
    if (missing_.empty()) return;
    core::log_info("staging   {} files of {} ({}) in {}", core::count_text(static_cast<int64_t>(missing_.size())),
                   core::printable(files_.directory), size_text(missing_bytes_), core::printable(stage_dir));
    make_folders();
    core::for_each_index(static_cast<int64_t>(missing_.size()), threads_, [this] {
      return [this, buffer = std::vector<uint8_t>()](int64_t at) mutable {
        copy(missing_[static_cast<size_t>(at)], buffer);
      };
    });
  }

  std::string note(const std::string& stage_dir) const {
    const std::string there = missing_.empty() ? "all of which was there already"
                              : missing_bytes_ < bytes_
                                  ? core::format("of which {} were there already", size_text(bytes_ - missing_bytes_))
                                  : core::format("copied in {:.1f} s", core::seconds_since(start_));
    return core::format("{} in {} are read from copies in {} ({}, {}), which go with the run", files_text(),
                        core::printable(files_.directory), core::printable(stage_dir), size_text(bytes_), there);
  }

 private:
  std::string files_text() const { return core::count_text(files_.count) + (files_.count == 1 ? " file" : " files"); }

  /// Those for the copies, without what a killed process had not finished.
  void make_folders() const {
    for (int i = 0; i < 16; ++i) {
      const std::string folder = core::format("{}/{:x}", path_, i);
      if (::mkdir(folder.c_str(), 0700) == 0) continue;
      if (errno != EEXIST) throw core::errno_error(errno, "create", core::printable(folder), ErrorKind::cannot_create);
      for (const std::string& copy : copies_in(folder, "")) {
        if (core::ends_with(copy, kUnfinished)) ::unlink(copy.c_str());
      }
    }
  }

  void copy(int64_t index, std::vector<uint8_t>& buffer) {
    const FileStamp stamp = files_.stamp(index);
    if (!read_sample_file(files_.path(index), stamp, buffer).empty()) return;  // its reader will meet that, too
    const std::string path = folder_.copy_of(files_.name(index));
    write_copy(path, core::format("{}.{}{}", path, index, kUnfinished), buffer.data(), stamp);
    say_progress(copied_ += static_cast<uint64_t>(stamp.size));
  }

  void say_progress(uint64_t copied) {
    constexpr std::chrono::seconds kSayEvery(5);
    const std::lock_guard<std::mutex> lock(said_mutex_);
    if (Clock::now() - said_ < kSayEvery) return;
    said_ = Clock::now();
    core::log_info("staged    {} of {}", size_text(copied), size_text(missing_bytes_));
  }

  const FilesToStage& files_;
  const StagedFolder& folder_;
  const std::string path_;
  const Clock::time_point start_ = Clock::now();
  int64_t threads_ = 1;
  std::vector<int64_t> missing_;
  uint64_t bytes_ = 0, missing_bytes_ = 0, room_ = 0;
  std::atomic<uint64_t> copied_{0};
  std::mutex said_mutex_;
  Clock::time_point said_ = Clock::now();
};

}  // namespace

std::shared_ptr<const StagedFolder> StagedFolder::open(const std::string& path) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      throw core::errno_error(errno, "create", core::printable(path), ErrorKind::cannot_create);
    }
    const int fd = core::open_retrying(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) continue;  // another process has just removed it
    if (fd < 0) throw core::errno_error(errno, "open", core::printable(path), ErrorKind::io);
    struct stat info {
    }, now{};
    const bool locked = ::flock(fd, LOCK_SH) == 0 && ::fstat(fd, &info) == 0;
    if (locked && info.st_uid == ::geteuid() && ::lstat(path.c_str(), &now) == 0 && now.st_ino == info.st_ino) {
      return std::shared_ptr<const StagedFolder>(new StagedFolder(path, fd));
    }
    ::close(fd);
    if (locked && info.st_uid != ::geteuid()) {
      throw core::Error(ErrorKind::permission, core::printable(path) + " belongs to another user",
                        "choose another --stage-dir, or remove the folder");
    }
  }
  throw core::Error(ErrorKind::io, core::format("the folder {} vanishes as soon as it is made", core::printable(path)),
                    "choose a --stage-dir that no other program cleans");
}

std::shared_ptr<const StagedFolder> StagedFolder::stage(const FilesToStage& files, const std::string& stage_dir,
                                                        std::string& note) {
  require_stage_folder(stage_dir);
  const std::string original = resolved_path(files.directory);
  const std::string path = core::format("{}/{}{}-{:016x}-{}.files", stage_dir, kStagePrefix, ::geteuid(),
                                        core::hash64(original), fs::path(original).filename().string());
  std::shared_ptr<const StagedFolder> folder = open(path);
  const MakerLock lock(path + kMakerLock);
  lock.acquire();
  Making making(files, *folder, path);
  making.look();
  making.require_room(stage_dir);
  making.copy_missing(stage_dir);
  note = making.note(stage_dir);
  return folder;
}

StagedFolder::~StagedFolder() {
  ::close(fd_);
  remove_unused_copy(path_);
}

std::string StagedFolder::copy_of(std::string_view name) const {
  const std::string digest = core::hash_hex(name);
  return core::format("{}/{}/{}", path_, digest.substr(0, 1), digest.substr(1));
}

}  // namespace stoker::data
