// SPDX-License-Identifier: Apache-2.0
#include "data/storage/byte_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/open_retrying.h"

namespace stoker::data {
namespace {

/// One attempt: 0, an errno, or -1 when the file ends too early.
int attempt_pread(int fd, uint64_t at, char* bytes, uint64_t count) {
  for (uint64_t done = 0; done < count;) {
    const ssize_t got = ::pread(fd, bytes + done, count - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return -1;
    done += static_cast<uint64_t>(got);
  }
  return 0;
}

}  // namespace

FileBytes::FileBytes(std::string path) : path_(std::move(path)) {
  fd_ = core::open_retrying(path_.c_str(), O_RDONLY | O_NONBLOCK);
  struct stat info {};
  const int error_number = fd_ < 0 || ::fstat(fd_, &info) != 0 ? errno : 0;
  const bool regular = error_number == 0 && S_ISREG(info.st_mode);
  if (regular) {
    stamp_ = {info.st_size, int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
    return;
  }
  if (fd_ >= 0) ::close(fd_);
  if (error_number != 0) {
    throw core::errno_error(error_number, "read", core::printable(path_), core::ErrorKind::no_input);
  }
  throw core::Error(core::ErrorKind::no_input,
                    core::format("cannot read {}: it is {}", core::printable(path_),
                                 S_ISDIR(info.st_mode) ? "a directory" : "not a regular file"));
}

FileBytes::~FileBytes() {
  if (fd_ >= 0) ::close(fd_);
}

std::string FileBytes::try_read(uint64_t at, void* bytes, uint64_t count) const {
  const int error_number =
      with_storage_retries([&] { return attempt_pread(fd_, at, static_cast<char*>(bytes), count); });
  if (error_number > 0) {
    throw core::errno_error(error_number, "read", core::printable(path_), core::ErrorKind::io);
  }
  return error_number == 0 ? "" : "the file has become shorter since it was opened";
}

void FileBytes::read(uint64_t at, void* bytes, uint64_t count) const {
  const std::string cause = try_read(at, bytes, count);
  if (!cause.empty()) throw core::Error(core::ErrorKind::data, core::printable(path_) + ": " + cause);
}

}  // namespace stoker::data
