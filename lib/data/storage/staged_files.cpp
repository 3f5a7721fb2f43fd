// SPDX-License-Identifier: Apache-2.0
#include "data/storage/staged_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/open_retrying.h"
#include "core/system/file.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "core/system/worker_pool.h"
#include "core/time/clock.h"
#include "data/storage/byte_reader.h"
#include "data/storage/tree_walk.h"

namespace stoker::data {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;
using core::printable;
namespace fs = std::filesystem;

constexpr char kUnfinished[] = ".part";
constexpr uint64_t kStep = 1 << 20;  ///< bytes that are read at once

std::string text_of_size(uint64_t bytes) { return core::bytes_text(static_cast<double>(bytes)); }

/// Without links; as it is where there is no such file.
std::string resolved(const std::string& path) {
  std::error_code failed;
  const fs::path whole = fs::canonical(path, failed);
  return failed ? path : whole.string();
}

/// A descriptor that is closed on every way out.
struct Opened {
  Opened(const std::string& path, int flags) : fd(core::open_retrying(path.c_str(), flags | O_NOFOLLOW, 0600)) {
    if (fd < 0) throw core::errno_error(errno, "open", printable(path), ErrorKind::cannot_create);
  }
  ~Opened() { ::close(fd); }
  Opened& operator=(Opened&&) = delete;  // not copied, not moved
  const int fd;
};

bool is_same(const FileStamp& a, const FileStamp& b) { return a.size == b.size && a.modified_ns == b.modified_ns; }

/// Bytes that copies in `directory` may take; in memory (tmpfs) no more than is free of that.
uint64_t free_space_in(const std::string& directory) {
  const uint64_t on_storage = core::free_bytes(directory);
  struct statfs info {};
  if (::statfs(directory.c_str(), &info) != 0 || info.f_type != TMPFS_MAGIC) return on_storage;
  const int64_t memory = core::read_machine_facts().ram_available_bytes;
  return memory > 0 ? std::min(on_storage, static_cast<uint64_t>(memory)) : on_storage;
}

/// Calls `visit` with the bytes of a file, piece by piece; false where it has become shorter.
template <typename Visit>
bool read_through(const FileBytes& file, std::vector<uint8_t>& buffer, const Visit& visit) {
  buffer.resize(kStep);
  for (uint64_t at = 0; at < file.size(); at += kStep) {
    core::throw_if_stopped();
    const uint64_t count = std::min(kStep, file.size() - at);
    if (!file.try_read(at, buffer.data(), count).empty()) return false;
    visit(buffer.data(), count);
  }
  return true;
}

/// Makes a copy that is whole once it is visible as `copy`; none where the original differs from its stamp.
void make_copy(const std::string& path, const FileStamp& stamp, const std::string& copy, const std::string& part,
               std::vector<uint8_t>& buffer) {
  if (!is_same(stamp_of(path), stamp)) return;  // its reader will meet that, too
  const FileBytes original(path);
  core::Hasher read, written;
  {
    const Opened file(part, O_WRONLY | O_CREAT | O_TRUNC);
    const bool is_whole = read_through(original, buffer, [&](const uint8_t* bytes, uint64_t count) {
      read.add(bytes, count);
      for (uint64_t done = 0; done < count;) {
        const ssize_t some = ::write(file.fd, bytes + done, count - done);
        if (some < 0 && errno != EINTR) throw core::errno_error(errno, "write", printable(part), ErrorKind::io);
        if (some > 0) done += static_cast<uint64_t>(some);
      }
    });
    const timespec times[2] = {{0, UTIME_OMIT}, {stamp.modified_ns / 1'000'000'000, stamp.modified_ns % 1'000'000'000}};
    // A machine that stops must not leave a name in front of bytes that never reached the storage.
    if (::futimens(file.fd, times) != 0 || ::fsync(file.fd) != 0) {
      throw core::errno_error(errno, "write", printable(part), ErrorKind::io);
    }
    if (!is_whole || !is_same(stamp_of(path), stamp)) {  // it has changed meanwhile
      ::unlink(part.c_str());
      return;
    }
  }
  const FileBytes back(part);
  const bool is_read =
      read_through(back, buffer, [&](const uint8_t* bytes, uint64_t count) { written.add(bytes, count); });
  if (!is_read || read.hex() != written.hex() || !is_same(back.stamp(), stamp)) {
    throw Error(
        ErrorKind::io,
        format("the copy {} differs from {} in its bytes, its size or its time", printable(part), printable(path)),
        "choose a --stage-dir on storage that keeps what is written, times to the nanosecond, such as /dev/shm");
  }
  if (::rename(part.c_str(), copy.c_str()) != 0) {
    throw core::errno_error(errno, "create", printable(copy), ErrorKind::io);
  }
}

/// Waits until this process alone makes copies in a folder. Throws core::StopRequested.
void wait_for_lock(int fd) {
  for (bool is_logged = false; ::flock(fd, LOCK_EX | LOCK_NB) != 0; is_logged = true) {
    core::throw_if_stopped();
    if (!is_logged) core::log_info("staging   waits for another process, which copies the same files");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// Makes the copies that are missing in `folder`, whose lock the caller holds. Returns the note.
std::string copy_missing(const FilesToStage& files, const StagedFiles& copies, const std::string& folder,
                         const std::string& stage_dir) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {  // what a killed process had not finished
    if (core::ends_with(entry.path().string(), kUnfinished)) ::unlink(entry.path().c_str());
  }
  constexpr uint64_t kPage = 4096;  // what a file takes is a multiple of this
  uint64_t all = 0, missing = 0, needed = 0;
  std::vector<int64_t> lacking;
  for (int64_t i = 0; i < files.count; ++i) {
    const FileStamp stamp = files.stamp(i);
    const auto size = static_cast<uint64_t>(std::max<int64_t>(0, stamp.size));
    all += size;
    if (stamp.size < 0 || is_same(stamp_of(copies.copy_of(files.name(i))), stamp)) continue;
    lacking.push_back(i);
    missing += size;
    needed += (size + kPage - 1) / kPage * kPage;
  }
  const std::string what = format("{} in {}", core::counted(files.count, "file"), printable(files.directory));
  if (const uint64_t free = free_space_in(stage_dir); needed > free) {
    throw Error(ErrorKind::cannot_create,
                format("{} has {} free, but {} that have no copy there yet take {}", printable(stage_dir),
                       text_of_size(free), what, text_of_size(needed)),
                "choose another --stage-dir, free some space there (stoker-stage-* is what runs have left that were "
                "killed), or leave --stage-dir out");
  }
  if (missing > 0) core::log_info("staging   {} of {} in {}", text_of_size(missing), what, printable(stage_dir));
  const auto start = std::chrono::steady_clock::now();
  const int64_t threads = std::clamp<int64_t>(2 * core::read_machine_facts().cpus, 4, 32);  // they wait for storage
  core::for_each_index(static_cast<int64_t>(lacking.size()), threads, [&] {
    return [&, buffer = std::vector<uint8_t>()](int64_t at) mutable {
      const int64_t i = lacking[static_cast<size_t>(at)];
      const std::string copy = copies.copy_of(files.name(i));
      make_copy(files.path(i), files.stamp(i), copy, format("{}.{}{}", copy, i, kUnfinished), buffer);
    };
  });
  return format("copies of {} are read from {} ({}, {} of it copied in {:.1f} s), which go with the run", what,
                printable(stage_dir), text_of_size(all), text_of_size(missing), core::seconds_since(start));
}

}  // namespace

std::shared_ptr<const StagedFiles> StagedFiles::open(const std::string& path) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      throw core::errno_error(errno, "create", printable(path), ErrorKind::cannot_create);
    }
    const int fd = core::open_retrying(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) continue;  // another process has just removed it
    if (fd < 0) throw core::errno_error(errno, "open", printable(path), ErrorKind::io);
    std::shared_ptr<const StagedFiles> folder(new StagedFiles(path, fd));
    struct stat info {
    }, now{};
    if (::fstat(fd, &info) == 0 && info.st_uid != ::geteuid()) {
      throw Error(ErrorKind::permission, printable(path) + " belongs to another user",
                  "choose another --stage-dir, or remove the folder");
    }
    if (::flock(fd, LOCK_SH) == 0 && ::lstat(path.c_str(), &now) == 0 && now.st_ino == info.st_ino) return folder;
  }
  throw Error(ErrorKind::io, format("the folder {} vanishes as soon as it is made", printable(path)),
              "choose a --stage-dir that no other program cleans");
}

std::shared_ptr<const StagedFiles> StagedFiles::stage(const FilesToStage& files, const std::string& stage_dir,
                                                      std::string& note) {
  if (!fs::is_directory(stage_dir)) {
    throw Error(ErrorKind::no_input, format("--stage-dir {} is not a folder", printable(stage_dir)),
                "name one in memory, such as /dev/shm");
  }
  const std::string original = resolved(files.directory);
  const std::string path = format("{}/stoker-stage-{}-{:016x}", stage_dir, ::geteuid(), core::hash64(original));
  std::shared_ptr<const StagedFiles> copies = open(path);
  const Opened maker(path + "/maker", O_RDWR | O_CREAT);
  wait_for_lock(maker.fd);
  note = copy_missing(files, *copies, path, stage_dir);
  return copies;
}

std::shared_ptr<const StagedFiles> StagedFiles::stage(const std::vector<std::string>& paths,
                                                      const std::string& stage_dir, std::string& note) {
  std::vector<std::string> names;
  std::vector<FileStamp> stamps;
  for (const std::string& path : paths) {
    names.push_back(resolved(path));
    stamps.push_back(stamp_of(path));
  }
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  const std::string folder = fs::path(paths.at(0)).parent_path().string();
  return stage({folder.empty() ? "." : folder, static_cast<int64_t>(paths.size()),
                [&](int64_t i) { return std::string_view(names[at(i)]); }, [&](int64_t i) { return paths[at(i)]; },
                [&](int64_t i) { return stamps[at(i)]; }},
               stage_dir, note);
}

StagedFiles::~StagedFiles() {
  struct stat info {
  }, now{};
  const bool is_last = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd_, &info) == 0 && info.st_uid == ::geteuid() &&
                       ::lstat(path_.c_str(), &now) == 0 && now.st_ino == info.st_ino;
  std::error_code ignored;  // what cannot be removed stays
  if (is_last) fs::remove_all(path_, ignored);
  ::close(fd_);
}

std::string StagedFiles::copy_of(std::string_view name) const { return format("{}/{}", path_, core::hash_hex(name)); }

std::string StagedFiles::copy_or_original(const std::string& path) const {
  const std::string copy = copy_of(resolved(path));
  const FileStamp now = stamp_of(path);
  return now.size >= 0 && is_same(stamp_of(copy), now) ? copy : path;
}

}  // namespace stoker::data
