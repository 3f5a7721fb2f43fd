// SPDX-License-Identifier: Apache-2.0
#include "core/system/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace stoker::core {
namespace {

/// Repeats a call that returns a negative number and sets errno to EINTR. Returns what the call returned last.
template <typename Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

int errno_unless(bool good) { return good ? 0 : errno; }

class PosixFile : public File {
 public:
  explicit PosixFile(int fd) : fd_(fd) {}
  ~PosixFile() override {
    if (fd_ >= 0) ::close(fd_);
  }
  PosixFile& operator=(PosixFile&&) = delete;  // not copied, not moved

  int write(const void* bytes, uint64_t count) override {
    const char* at = static_cast<const char*>(bytes);
    while (count > 0) {
      const ssize_t n = retry([&] { return ::write(fd_, at, count); });
      if (n < 0) return errno;
      at += n;
      count -= static_cast<uint64_t>(n);
    }
    return 0;
  }

  int read(void* bytes, uint64_t count, uint64_t& got) override {
    const ssize_t n = retry([&] { return ::read(fd_, bytes, count); });
    got = n < 0 ? 0 : static_cast<uint64_t>(n);
    return errno_unless(n >= 0);
  }

  int size(uint64_t& bytes) override {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) return errno;
    bytes = static_cast<uint64_t>(info.st_size);
    return 0;
  }

  int truncate(uint64_t bytes) override {
    return errno_unless(retry([&] { return ::ftruncate(fd_, static_cast<off_t>(bytes)); }) == 0);
  }

  int sync() override {
    return errno_unless(retry([&] { return ::fsync(fd_); }) == 0);
  }

  int close() override {
    const int fd = fd_;
    fd_ = -1;
    // Linux has closed the file even when it returns EINTR: to repeat the call could close somebody else's.
    return ::close(fd) == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int fd_;
};

int open_file(const std::string& path, int flags, std::unique_ptr<File>& file) {
  const int fd = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  if (fd < 0) return errno;
  file = std::make_unique<PosixFile>(fd);
  return 0;
}

/// Opens without waiting for the other end of a pipe, and refuses what is not a regular file.
int open_regular(const std::string& path, int flags, std::unique_ptr<File>& file) {
  const int fd = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666); });
  if (fd < 0) return errno == ENXIO ? EINVAL : errno;  // ENXIO: a pipe that nobody reads
  auto opened = std::make_unique<PosixFile>(fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  if (!S_ISREG(info.st_mode)) return EINVAL;
  file = std::move(opened);
  return 0;
}

bool is_link(const std::string& directory, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_LNK;
  struct stat info {};
  return ::lstat((directory + "/" + entry.d_name).c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

class PosixFileSystem : public FileSystem {
 public:
  int create(const std::string& path, std::unique_ptr<File>& file) override {
    return open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, file);
  }

  int append(const std::string& path, std::unique_ptr<File>& file) override {
    return open_regular(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, file);
  }

  int open(const std::string& path, Links links, std::unique_ptr<File>& file) override {
    return open_regular(path, links == Links::refuse ? O_RDONLY | O_NOFOLLOW : O_RDONLY, file);
  }

  int make_directory(const std::string& path) override {
    return errno_unless(retry([&] { return ::mkdir(path.c_str(), 0777); }) == 0);
  }

  int list(const std::string& directory, std::vector<DirectoryEntry>& entries) override {
    entries.clear();
    const int fd = retry([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return errno;
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
    if (!stream) {
      const int error_number = errno;
      ::close(fd);
      return error_number;
    }
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(stream.get());
      if (entry == nullptr && errno == EINTR) continue;
      if (entry == nullptr) return errno;
      const std::string name = entry->d_name;
      if (name != "." && name != "..") entries.push_back({name, is_link(directory, *entry)});
    }
  }

  int sync_directory(const std::string& directory) override {
    const int fd = retry([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return errno;
    // EINVAL: the file system cannot sync directories; nothing more can be done there.
    const int error_number = retry([&] { return ::fsync(fd); }) == 0 || errno == EINVAL ? 0 : errno;
    ::close(fd);
    return error_number;
  }

  int rename(const std::string& from, const std::string& to) override {
    return errno_unless(retry([&] { return ::rename(from.c_str(), to.c_str()); }) == 0);
  }

  int exchange(const std::string& one, const std::string& other) override {
    constexpr unsigned kExchange = 2;  // RENAME_EXCHANGE, which older headers lack
    return errno_unless(retry([&] {
                          return ::syscall(SYS_renameat2, AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), kExchange);
                        }) == 0);
  }

  int link(const std::string& target, const std::string& path) override {
    return errno_unless(retry([&] { return ::symlink(target.c_str(), path.c_str()); }) == 0);
  }

  int remove(const std::string& path) override {
    if (retry([&] { return ::unlink(path.c_str()); }) == 0) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    const int why_no_file = errno;
    if (retry([&] { return ::rmdir(path.c_str()); }) == 0) return 0;
    return errno == ENOTDIR ? why_no_file : errno;
  }
};

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem* const files = new PosixFileSystem;
  return *files;
}

}  // namespace stoker::core
