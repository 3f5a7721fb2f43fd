// SPDX-License-Identifier: Apache-2.0
#include "data/storage/sample_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/error.h"
#include "core/format.h"
#include "core/open_retrying.h"

namespace stoker::data {
namespace {

constexpr int64_t kMaxSampleBytes = int64_t{1} << 30;

/// Closes on every way out.
struct SampleDescriptor {
  explicit SampleDescriptor(const std::string& path) : fd(core::open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK)) {}
  ~SampleDescriptor() {
    if (fd >= 0) ::close(fd);
  }
  SampleDescriptor(const SampleDescriptor&) = delete;
  SampleDescriptor& operator=(const SampleDescriptor&) = delete;
  const int fd;
};

std::string stamp_problem(const struct stat& info, const FileStamp& stamp) {
  if (S_ISDIR(info.st_mode)) return "it is a directory";
  if (!S_ISREG(info.st_mode)) return "it is not a regular file";
  if (info.st_size > kMaxSampleBytes) {
    return core::format("it has {}, too much for an image", core::bytes_text(static_cast<double>(info.st_size)));
  }
  const int64_t modified_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (info.st_size != stamp.size) return "it has changed since the scan";
  if (modified_ns != stamp.modified_ns) return "its time has changed since the scan";
  return "";
}

/// One attempt. Returns 0 with `cause` set or empty, or an errno.
int attempt_read(const std::string& path, const FileStamp& stamp, int64_t max_bytes, std::vector<uint8_t>& buffer,
                 std::string& cause) {
  const SampleDescriptor file(path);
  struct stat info {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) return errno;
  cause = stamp_problem(info, stamp);
  if (!cause.empty()) return 0;
  const auto size = static_cast<size_t>(std::min<int64_t>(info.st_size, max_bytes));
  if (buffer.size() < size) buffer.resize(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::read(file.fd, buffer.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) {
      cause = "it has changed since the scan";
      return 0;
    }
    done += static_cast<size_t>(got);
  }
  return 0;
}

}  // namespace

bool is_storage_error(int error_number) {
  return error_number == EIO || error_number == ESTALE || error_number == ETIMEDOUT;
}

int with_storage_retries(const std::function<int()>& attempt) {
  constexpr int kAttempts = 3;
  std::chrono::milliseconds pause(50);
  for (int i = 1;; ++i, pause *= 4) {
    const int error_number = attempt();
    if (i == kAttempts || !is_storage_error(error_number)) return error_number;
    std::this_thread::sleep_for(pause);
  }
}

std::string read_sample_file(const std::string& path, const FileStamp& stamp, std::vector<uint8_t>& buffer,
                             int64_t max_bytes) {
  std::string cause;
  const int error_number = with_storage_retries([&] { return attempt_read(path, stamp, max_bytes, buffer, cause); });
  if (error_number == 0) return cause;
  if (is_storage_error(error_number)) {
    throw core::Error(
        core::ErrorKind::io,
        core::format("cannot read {}: {} (3 attempts)", core::printable(path), std::strerror(error_number)),
        "the storage failed, not the file: look at the disk or the mount, then run the same command again");
  }
  if (error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM || error_number == EACCES) {
    throw core::errno_error(error_number, "read", core::printable(path), core::ErrorKind::os);
  }
  return std::strerror(error_number);
}

}  // namespace stoker::data
