// SPDX-License-Identifier: Apache-2.0
#include "engine/group/rendezvous.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
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

constexpr off_t kPlace = 64;     // bytes of a rank
constexpr double kPatience = 3;  // seconds without a log line
constexpr std::chrono::milliseconds kBetweenTries(20);

/// The folder of the user, for all jobs of this machine.
std::string private_folder() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  return ((error ? fs::path("/tmp") : place) / format("stoker-{}", ::geteuid())).string();
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

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return;
  throw core::errno_error(errno, "create the folder in which ranks meet,", path, ErrorKind::cannot_create);
}

/// No other process enters or leaves meanwhile, unless is_busy().
class Door {
 public:
  Door() : path_(private_folder()) {
    make_folder(path_);
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
  Door& operator=(Door&&) = delete;  // not copied, not moved
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

std::string Heartbeat::text() const { return format("{} {} {}", number, static_cast<int64_t>(doing), process); }

Heartbeat Heartbeat::read(const std::string& text) {
  Heartbeat heartbeat;
  char* at = nullptr;
  heartbeat.number = std::strtoll(text.c_str(), &at, 10);
  if (!heartbeat.is_present()) return {};
  heartbeat.doing = static_cast<Doing>(std::strtoll(at, &at, 10));
  heartbeat.process = std::strtoll(at, &at, 10);
  return heartbeat;
}

LostRankFinder::LostRankFinder(int rank, int size, double timeout_seconds)
    : rank_(rank), timeout_(timeout_seconds), last_(static_cast<size_t>(size)), last_at_(static_cast<size_t>(size)) {}

double LostRankFinder::heartbeat_interval() const { return std::min(1.0, timeout_ / 16); }

void LostRankFinder::begin_wait(double now) {
  begin_ = without_long_ = now;
  has_looked_ = false;
}

std::string LostRankFinder::look(double now, const std::vector<Heartbeat>& heartbeats) {
  const auto name = [](size_t rank, double seconds, const char* what) {
    return format("rank {} {} for {:.3g} s", rank, what, seconds);
  };
  std::string silent, late;
  for (size_t rank = 0; rank < heartbeats.size(); ++rank) {
    if (static_cast<int>(rank) == rank_) continue;
    if (!has_looked_ || heartbeats[rank].number != last_[rank].number) last_at_[rank] = now;
    last_[rank] = heartbeats[rank];
    if (now - last_at_[rank] >= timeout_ / 2) {
      if (silent.empty()) silent = name(rank, now - last_at_[rank], "has sent no heartbeat");
    } else if (heartbeats[rank].doing == Heartbeat::Doing::long_work) {
      without_long_ = now;
    } else if (heartbeats[rank].doing == Heartbeat::Doing::computes && late.empty()) {
      late = name(rank, now - without_long_, "is alive, but the others have waited for it");
    }
  }
  has_looked_ = true;
  if (!silent.empty()) return silent;
  if (now - without_long_ < timeout_) return "";
  if (!late.empty()) return late;
  if (now - without_long_ < 2 * timeout_) return "";
  return format("all ranks have waited for each other for {:.3g} s: messages between them are lost",
                now - without_long_);
}

void wait_until_present(const std::function<std::string()>& missing, double seconds, const std::string& hint,
                        const bool& speaks) {
  std::string reported;
  for (const Clock::time_point begin = Clock::now();; std::this_thread::sleep_for(kBetweenTries)) {
    const std::string what = missing();
    if (what.empty()) return;
    core::throw_if_stopped();
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (waited > seconds) {
      throw Error(ErrorKind::peer_lost, format("{} did not come within {:g} s", what, seconds), hint);
    }
    if (waited < kPatience || what == reported || !speaks) continue;
    core::log_warning("waiting for {} ...", what);
    reported = what;
  }
}

Error duplicate_rank_error(int rank, int size, int64_t process) {
  return {ErrorKind::config, format("rank {} of {} is here already, as process {}", rank, size, process),
          "another run has the same MASTER_PORT, or the same job: wait for it, or name another port"};
}

RendezvousFolder::RendezvousFolder(const std::string& name, int rank, int size, double seconds)
    : path_(private_folder() + "/" + name), rank_(rank), size_(size) {
  wait_until_present([this] { return enter() ? "" : "the end of an earlier job in " + path_; }, seconds,
                     "end its processes, or name another MASTER_PORT");
}

RendezvousFolder::~RendezvousFolder() { leave(); }

/// False: not yet.
bool RendezvousFolder::enter() {
  const Door door;
  if (door.is_busy()) return false;
  door.sweep();
  make_folder(path_);
  ranks_ = ::open((path_ + "/ranks").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (ranks_ < 0) throw core::errno_error(errno, "open the folder in which ranks meet,", path_, ErrorKind::os);
  bool is_of_earlier = false;
  for (int rank = 0; rank < size_; ++rank)
    is_of_earlier |= heartbeat_of(rank).is_present() && !is_held(ranks_, rank, 1);
  is_of_earlier &= !is_held(ranks_, size_, 1);  // one that starts its ranks itself names each job anew
  const int error = is_of_earlier ? EAGAIN : hold(ranks_, rank_);
  if (error == 0) {
    send_heartbeat({1, Heartbeat::Doing::long_work, ::getpid()});
    return true;
  }
  const int64_t process = heartbeat_of(rank_).process;
  ::close(ranks_);
  ranks_ = -1;
  if (is_of_earlier) return false;
  if (error == EAGAIN || error == EACCES) throw duplicate_rank_error(rank_, size_, process);
  throw core::errno_error(error, "lock a file in", path_, ErrorKind::os);
}

void RendezvousFolder::leave() noexcept {
  ::close(ranks_);
  try {
    const Door door;
    if (!door.is_busy()) door.sweep();
  } catch (...) {  // who comes next does it
  }
}

void RendezvousFolder::send_heartbeat(const Heartbeat& heartbeat) {
  std::string text = heartbeat.text();
  text.resize(kPlace);
  if (::pwrite(ranks_, text.data(), text.size(), rank_ * kPlace) < 0) {
    throw core::errno_error(errno, "write to", path_, ErrorKind::os);
  }
}

Heartbeat RendezvousFolder::heartbeat_of(int rank) {
  std::string text(kPlace, '\0');
  const bool is_there = ::pread(ranks_, text.data(), text.size(), rank * kPlace) > 0;
  return is_there ? Heartbeat::read(text) : Heartbeat();
}

std::string RendezvousFolder::cause() {
  std::ifstream file(path_ + "/cause");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string RendezvousFolder::publish_cause(const std::string& cause) {
  const int file = ::open((path_ + "/cause").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) {
    [[maybe_unused]] const ssize_t ignored = ::write(file, cause.data(), cause.size());
    ::close(file);
  }
  const std::string there = this->cause();  // of another rank, perhaps half of a line
  return there.empty() ? cause : there;
}

bool RendezvousFolder::is_dead(int rank) {
  // In this order: a rank takes its lock before its first heartbeat, and gives it back after its last.
  return rank != rank_ && heartbeat_of(rank).is_present() && !is_held(ranks_, rank, 1) &&
         !heartbeat_of(rank).has_ended();
}

}  // namespace stoker::engine
