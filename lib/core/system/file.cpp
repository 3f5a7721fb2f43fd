// SPDX-License-Identifier: Apache-2.0
#include "core/system/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "core/error.h"
#include "core/format.h"

namespace stoker::core {
namespace {

/// Closes on every path out of a scope; close errors of files that were only read do not matter.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// Fills `content` (already sized) from the start of the file; returns the bytes read or -1 with errno.
int64_t read_fully(int fd, char* content, uint64_t count) {
  uint64_t done = 0;
  while (done < count) {
    const ssize_t n = ::pread(fd, content + done, count - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    done += static_cast<uint64_t>(n);
  }
  return static_cast<int64_t>(done);
}

struct ReadTrouble {
  int error_number = 0;  // 0: see text
  std::string text;
  bool is_content = false;  // too long
};

template <typename Buffer>
ReadTrouble read_regular_file(const std::string& path, uint64_t max_bytes, Buffer& buffer) {
  if (path.find('\0') != std::string::npos) return {0, "the path holds a NUL byte", false};
  const OpenFile file(open_retrying(path.c_str(), O_RDONLY | O_NONBLOCK));
  if (file.get() < 0) return {errno, "", false};
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return {errno, "", false};
  if (S_ISDIR(info.st_mode)) return {0, "it is a directory", false};
  if (!S_ISREG(info.st_mode)) return {0, "it is not a regular file", false};
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > max_bytes) {
    return {0, format("it has {}, more than the limit of {}", bytes_text(double(size)), bytes_text(double(max_bytes))),
            true};
  }
  buffer.resize(size);
  const int64_t got = read_fully(file.get(), reinterpret_cast<char*>(buffer.data()), size);
  if (got < 0) return {errno, "", false};
  buffer.resize(static_cast<size_t>(got));
  return {};
}

std::string parent_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void write_fully(int fd, const std::string& path, const void* bytes, uint64_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t n = ::write(fd, at, count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw errno_error(errno, "write", path, ErrorKind::io);
    at += n;
    count -= static_cast<uint64_t>(n);
  }
}

}  // namespace

std::string read_file(const std::string& path, uint64_t max_bytes) {
  std::string content;
  const ReadTrouble trouble = read_regular_file(path, max_bytes, content);
  if (trouble.error_number != 0) throw errno_error(trouble.error_number, "read", printable(path), ErrorKind::no_input);
  if (!trouble.text.empty()) {
    throw Error(trouble.is_content ? ErrorKind::data : ErrorKind::no_input,
                "cannot read " + printable(path) + ": " + trouble.text);
  }
  return content;
}

std::string read_file_into(const std::string& path, uint64_t max_bytes, std::vector<uint8_t>& buffer) {
  const ReadTrouble trouble = read_regular_file(path, max_bytes, buffer);
  return trouble.error_number != 0 ? std::strerror(trouble.error_number) : trouble.text;
}

bool file_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

uint64_t free_bytes(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) return 0;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

CheckedWriter::CheckedWriter(std::string path) : path_(std::move(path)) {
  fd_ = open_retrying(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (fd_ < 0) throw errno_error(errno, "create", printable(path_), ErrorKind::cannot_create);
}

CheckedWriter::~CheckedWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!finished_) ::unlink(path_.c_str());
}

void CheckedWriter::write(const void* bytes, uint64_t count) { write_fully(fd_, printable(path_), bytes, count); }

void CheckedWriter::finish() {
  if (::fsync(fd_) != 0) throw errno_error(errno, "sync", printable(path_), ErrorKind::io);
  const int closed = ::close(fd_);
  fd_ = -1;
  if (closed != 0) throw errno_error(errno, "close", printable(path_), ErrorKind::io);
  finished_ = true;
}

void write_file_atomically(const std::string& path, std::string_view content, bool durable) {
  const std::string temporary = format("{}.tmp-{}", path, ::getpid());
  ::unlink(temporary.c_str());  // ours from an earlier process with the same pid, if any
  const int fd = open_retrying(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (fd < 0) throw errno_error(errno, "create", printable(temporary), ErrorKind::cannot_create);
  try {
    write_fully(fd, printable(temporary), content.data(), content.size());
    if (durable && ::fsync(fd) != 0) throw errno_error(errno, "sync", printable(temporary), ErrorKind::io);
  } catch (...) {
    ::close(fd);
    ::unlink(temporary.c_str());
    throw;
  }
  if (::close(fd) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error_number = errno;
    ::unlink(temporary.c_str());
    throw errno_error(error_number, "replace", printable(path), ErrorKind::io);
  }
  if (durable) sync_directory(parent_of(path));
}

void append_file(const std::string& path, std::string_view content) {
  const int fd = open_retrying(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (fd < 0) throw errno_error(errno, "open", printable(path), ErrorKind::io);
  const ssize_t written = ::write(fd, content.data(), content.size());
  const int error_number = written < 0 ? errno : ENOSPC;
  ::close(fd);
  if (written != static_cast<ssize_t>(content.size())) {
    throw errno_error(error_number, "write", printable(path), ErrorKind::io);
  }
}

void sync_directory(const std::string& directory) {
  const OpenFile folder(open_retrying(directory.c_str(), O_RDONLY | O_DIRECTORY));
  if (folder.get() < 0) throw errno_error(errno, "open", printable(directory), ErrorKind::io);
  // EINVAL: the file system cannot sync directories; nothing more can be done there.
  if (::fsync(folder.get()) != 0 && errno != EINVAL) {
    throw errno_error(errno, "sync", printable(directory), ErrorKind::io);
  }
}

void make_directories(const std::string& directory) {
  if (directory.empty()) throw Error(ErrorKind::cannot_create, "cannot create a folder without a name");
  for (size_t end = directory.find('/', 1);; end = directory.find('/', end + 1)) {
    const std::string part = directory.substr(0, end);
    if (::mkdir(part.c_str(), 0777) == 0) {
      sync_directory(parent_of(part));  // or a power loss could take the folder and all that is in it
    } else if (errno != EEXIST) {
      throw errno_error(errno, "create folder", printable(part), ErrorKind::cannot_create);
    }
    if (end == std::string::npos) break;
  }
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    throw Error(ErrorKind::cannot_create, "cannot create folder " + printable(directory) + ": a file is in the way",
                "choose another folder, or move the file");
  }
}

LockFile::LockFile(const std::string& path, const std::string& what, const std::string& hint) {
  fd_ = open_retrying(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
  if (fd_ < 0) throw errno_error(errno, "create", printable(path), ErrorKind::cannot_create);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd_, F_OFD_SETLK, &whole) != 0) {
    const int error_number = errno;
    std::string holder(256, '\0');
    holder.resize(static_cast<size_t>(std::max<ssize_t>(0, ::pread(fd_, holder.data(), holder.size(), 0))));
    ::close(fd_);
    if (error_number != EAGAIN && error_number != EACCES) {
      throw errno_error(error_number, "lock", printable(path), ErrorKind::os);
    }
    throw Error(ErrorKind::run_dir_in_use,
                "another process uses this " + what + " (" + printable(path) + "): " + printable(holder), hint);
  }
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string holder = format("pid {} on {}", ::getpid(), host);
  // What is in the file only names the holder; the lock itself is the kernel's.
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, holder.data(), holder.size(), 0) < 0) {
    const int error_number = errno;
    ::close(fd_);
    throw errno_error(error_number, "write", printable(path), ErrorKind::io);
  }
}

LockFile::~LockFile() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace stoker::core
