// SPDX-License-Identifier: Apache-2.0
#include "engine/group/meeting.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"

namespace stoker::engine {
namespace {

namespace fs = std::filesystem;
using core::Error;
using core::ErrorKind;
using core::format;
using Clock = std::chrono::steady_clock;

constexpr off_t kPlace = 64;  // bytes of a rank
constexpr std::chrono::milliseconds kBetweenTries(20);

/// Of the user, for all jobs of this machine.
std::string private_folder() {
  std::error_code trouble;
  const fs::path place = fs::temp_directory_path(trouble);
  return ((trouble ? fs::path("/tmp") : place) / format("stoker-{}", ::geteuid())).string();
}

struct flock places_of(int first, int count) {
  struct flock places {};
  places.l_type = F_WRLCK;
  places.l_whence = SEEK_SET;
  places.l_start = first * kPlace;
  places.l_len = count * kPlace;
  return places;
}

/// Whether somebody holds one of these places through another open file; `count` 0: one of all.
bool is_held(int file, int first, int count) {
  struct flock places = places_of(first, count);
  return ::fcntl(file, F_OFD_GETLK, &places) != 0 || places.l_type != F_UNLCK;
}

/// Returns an errno.
int hold(int file, int rank) {
  struct flock place = places_of(rank, 1);
  return ::fcntl(file, F_OFD_SETLK, &place) == 0 ? 0 : errno;
}

/// Nobody else enters or leaves meanwhile, unless is_busy().
class Door {
 public:
  Door() : path_(private_folder()) {
    ::mkdir(path_.c_str(), 0700);
    folder_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info {};
    if (folder_ < 0 || ::fstat(folder_, &info) != 0) {
      throw core::errno_error(errno, "open the folder in which ranks meet,", path_, ErrorKind::os);
    }
    if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0) {
      ::close(folder_);
      throw Error(ErrorKind::permission, format("others may enter {}, the folder in which ranks meet", path_),
                  "remove it, or name another place in TMPDIR");
    }
    is_busy_ = ::flock(folder_, LOCK_EX | LOCK_NB) != 0;
  }
  ~Door() { ::close(folder_); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  bool is_busy() const { return is_busy_; }

  /// Jobs whose processes are gone.
  void sweep() const {
    std::error_code ignored;
    for (const fs::directory_entry& job : fs::directory_iterator(path_, ignored)) {
      const int file = ::open((job.path() / "ranks").c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
      const bool is_there = file >= 0 ? is_held(file, 0, 0) : errno != ENOENT;
      if (file >= 0) ::close(file);
      if (!is_there) fs::remove_all(job.path(), ignored);
    }
  }

 private:
  const std::string path_;
  int folder_ = -1;
  bool is_busy_ = false;
};

}  // namespace

Error second_of_rank(int rank, int size, int64_t process) {
  return {ErrorKind::config, format("rank {} of {} is here already, as process {}", rank, size, process),
          "another run has the same MASTER_PORT, or the same job: wait for it, or name another port"};
}

MeetingFolder::MeetingFolder(const std::string& name, int rank, int size, double seconds)
    : path_(private_folder() + "/" + name), rank_(rank), size_(size) {
  bool has_told = false;
  for (const Clock::time_point begin = Clock::now(); !enter(); std::this_thread::sleep_for(kBetweenTries)) {
    core::throw_if_stopped();
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (waited > seconds) {
      throw Error(ErrorKind::peer_lost, format("an earlier job in {} did not end within {:g} s", path_, seconds),
                  "end its processes, or name another MASTER_PORT");
    }
    if (waited > kPatience && !has_told) core::log_warning("waiting for the end of an earlier job in {} ...", path_);
    has_told |= waited > kPatience;
  }
}

MeetingFolder::~MeetingFolder() { leave(); }

/// False: not yet.
bool MeetingFolder::enter() {
  const Door door;
  if (door.is_busy()) return false;
  door.sweep();
  ::mkdir(path_.c_str(), 0700);
  ranks_ = ::open((path_ + "/ranks").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (ranks_ < 0) throw core::errno_error(errno, "open the folder in which ranks meet,", path_, ErrorKind::os);
  bool is_of_earlier = false;
  for (int rank = 0; rank < size_; ++rank) is_of_earlier |= sign_of(rank).is_here() && !is_held(ranks_, rank, 1);
  is_of_earlier &= !is_held(ranks_, size_, 1);  // one that starts its ranks itself names each job anew
  const int trouble = is_of_earlier ? EAGAIN : hold(ranks_, rank_);
  if (trouble == 0) {
    give_sign({1, SignOfLife::Doing::long_work, ::getpid()});
    return true;
  }
  const int64_t process = sign_of(rank_).process;
  ::close(ranks_);
  ranks_ = -1;
  if (is_of_earlier) return false;
  if (trouble == EAGAIN || trouble == EACCES) throw second_of_rank(rank_, size_, process);
  throw core::errno_error(trouble, "lock a file in", path_, ErrorKind::os);
}

void MeetingFolder::leave() noexcept {
  ::close(ranks_);
  try {
    const Door door;
    if (!door.is_busy()) door.sweep();
  } catch (...) {  // who comes next does it
  }
}

void MeetingFolder::give_sign(const SignOfLife& sign) {
  std::string text = sign.text();
  text.resize(kPlace);
  if (::pwrite(ranks_, text.data(), text.size(), rank_ * kPlace) < 0) {
    throw core::errno_error(errno, "write to", path_, ErrorKind::os);
  }
}

SignOfLife MeetingFolder::sign_of(int rank) {
  std::string text(kPlace, '\0');
  ::pread(ranks_, text.data(), text.size(), rank * kPlace);
  return SignOfLife::read(text);
}

std::string MeetingFolder::cause() {
  std::ifstream file(path_ + "/cause");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string MeetingFolder::say(const std::string& cause) {
  const int file = ::open((path_ + "/cause").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) {
    [[maybe_unused]] const ssize_t ignored = ::write(file, cause.data(), cause.size());
    ::close(file);
  }
  const std::string there = this->cause();  // of another rank, perhaps half of a line
  return there.empty() ? cause : there;
}

bool MeetingFolder::is_dead(int rank) {
  // In this order: a rank takes its lock before its first sign, and gives it back after its last.
  return rank != rank_ && sign_of(rank).is_here() && !is_held(ranks_, rank, 1) && !sign_of(rank).has_ended();
}

}  // namespace stoker::engine
