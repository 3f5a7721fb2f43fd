// SPDX-License-Identifier: Apache-2.0
#include "data/probe/storage_probe.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "core/open_retrying.h"
#include "core/system/stop_signal.h"
#include "core/time/clock.h"

namespace stoker::data {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxSample = 64;
constexpr int64_t kMaxBytesOfFile = 8 << 20;
constexpr int64_t kProbedBytes = 4096;

/// Files spread evenly over what a walk finds, so that they do not lie side by side.
std::vector<std::string> sample_of(const std::string& directory, int64_t& seen) {
  std::error_code error;
  std::vector<std::string> paths;
  const auto options = fs::directory_options::skip_permission_denied;
  if (fs::is_regular_file(directory, error)) {
    seen = 1;
    return {directory};
  }
  for (fs::recursive_directory_iterator at(directory, options, error), end; !error && at != end; at.increment(error)) {
    core::throw_if_stopped();
    std::error_code ignored;
    if (at->is_regular_file(ignored)) paths.push_back(at->path().string());
    if (static_cast<int64_t>(paths.size()) == kMaxFilesSeen) break;
  }
  if (error) {
    throw core::Error(core::ErrorKind::no_input,
                      core::format("cannot list {}: {}", core::printable(directory), error.message()));
  }
  seen = static_cast<int64_t>(paths.size());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> sample;
  const size_t count = std::min(kMaxSample, paths.size());
  for (size_t i = 0; i < count; ++i) sample.push_back(paths[i * paths.size() / count]);
  return sample;
}

/// One open file of the sample; closed with it.
class SampleFile {
 public:
  explicit SampleFile(const std::string& path) : fd_(core::open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK)) {
    struct stat info {};
    if (fd_ >= 0 && ::fstat(fd_, &info) == 0) bytes_ = std::min<int64_t>(info.st_size, kMaxBytesOfFile);
  }
  ~SampleFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  SampleFile& operator=(SampleFile&&) = delete;  // not copied, not moved

  bool is_usable() const { return fd_ >= 0 && bytes_ > 0; }
  int64_t bytes() const { return bytes_; }
  void drop() const { ::posix_fadvise(fd_, 0, bytes_, POSIX_FADV_DONTNEED); }

  /// The bytes of the file that are in the page cache now.
  int64_t cached_bytes() const {
    void* const map = ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ, MAP_SHARED, fd_, 0);
    if (map == MAP_FAILED) return 0;
    const long page = ::sysconf(_SC_PAGESIZE);
    std::vector<unsigned char> resident(static_cast<size_t>((bytes_ + page - 1) / page));
    const bool known = ::mincore(map, static_cast<size_t>(bytes_), resident.data()) == 0;
    ::munmap(map, static_cast<size_t>(bytes_));
    const auto pages =
        known ? std::count_if(resident.begin(), resident.end(), [](unsigned char c) { return c & 1; }) : 0;
    return std::min<int64_t>(bytes_, pages * page);
  }

 private:
  const int fd_;
  int64_t bytes_ = 0;
};

/// Reads as the loader does: opens, reads to the end. Returns seconds until the first page was there.
double read_file_once(const std::string& path, int64_t bytes, std::vector<char>& buffer) {
  const Clock::time_point begin = Clock::now();
  const int fd = core::open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK);
  buffer.resize(static_cast<size_t>(std::max(bytes, kProbedBytes)));
  ssize_t got = fd >= 0 ? ::pread(fd, buffer.data(), kProbedBytes, 0) : -1;
  const double first_page = core::seconds_since(begin);
  for (int64_t at = got; got > 0 && at < bytes; at += got) {
    got = ::pread(fd, buffer.data() + at, static_cast<size_t>(bytes - at), at);
  }
  if (fd >= 0) ::close(fd);
  return first_page;
}

}  // namespace

StorageSpeed speed_of(const std::vector<FileReading>& readings) {
  StorageSpeed speed;
  std::vector<double> opens;
  int64_t cached = 0, still_cached = 0;
  double first_seconds = 0, second_seconds = 0;
  for (const FileReading& reading : readings) {
    opens.push_back(reading.open_seconds);
    speed.bytes_read += reading.bytes;
    cached += reading.cached_bytes;
    still_cached += reading.still_cached_bytes;
    first_seconds += reading.first_seconds;
    second_seconds += reading.second_seconds;
  }
  std::sort(opens.begin(), opens.end());
  const auto total = static_cast<double>(speed.bytes_read);
  speed.files_read = static_cast<int64_t>(readings.size());
  speed.open_seconds = opens[opens.size() / 2];
  speed.slow_open_seconds = opens[opens.size() * 95 / 100];
  speed.cached_share = static_cast<double>(cached) / total;
  speed.dropped = static_cast<double>(still_cached) < 0.1 * total;
  speed.bytes_per_second = total / std::max(1e-9, first_seconds);
  speed.cached_bytes_per_second = total / std::max(1e-9, second_seconds);
  return speed;
}

StorageSpeed probe_storage(const std::string& directory, double seconds) {
  int64_t seen = 0;
  const std::vector<std::string> sample = sample_of(directory, seen);
  std::vector<FileReading> readings;
  std::vector<char> buffer;
  const Clock::time_point begin = Clock::now();
  for (const std::string& path : sample) {
    core::throw_if_stopped();
    if (core::seconds_since(begin) > seconds) break;
    FileReading reading;
    {
      const SampleFile file(path);
      if (!file.is_usable()) continue;
      reading.bytes = file.bytes();
      reading.cached_bytes = file.cached_bytes();
      file.drop();
      reading.still_cached_bytes = file.cached_bytes();
    }
    Clock::time_point one = Clock::now();
    reading.open_seconds = read_file_once(path, reading.bytes, buffer);
    reading.first_seconds = core::seconds_since(one);
    one = Clock::now();
    read_file_once(path, reading.bytes, buffer);
    reading.second_seconds = core::seconds_since(one);
    readings.push_back(reading);
  }
  if (readings.empty()) {
    throw core::Error(core::ErrorKind::no_input,
                      core::format("no file below {} can be read", core::printable(directory)));
  }
  StorageSpeed speed = speed_of(readings);
  speed.files_seen = seen;
  return speed;
}

}  // namespace stoker::data
