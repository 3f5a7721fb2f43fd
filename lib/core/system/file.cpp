// SPDX-License-Identifier: Apache-2.0
#include "core/system/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/open_retrying.h"
#include "core/system/machine.h"

namespace stoker::core {
namespace {

/// Throws for a call that failed.
void require(int error_number, const char* action, const std::string& path, ErrorKind otherwise) {
  if (error_number != 0) throw output_error(error_number, action, path, otherwise);
}

Error unreadable(ErrorKind kind, const std::string& path, const std::string& cause) {
  return {kind, "cannot read " + printable(path) + ": " + cause};
}

void require_read(int error_number, const std::string& path) {
  if (error_number != 0) throw errno_error(error_number, "read", printable(path), ErrorKind::no_input);
}

}  // namespace

std::unique_ptr<File> open_to_read(const std::string& path, FileSystem& files) {
  if (path.find('\0') != std::string::npos) throw unreadable(ErrorKind::no_input, path, "the path holds a NUL byte");
  std::unique_ptr<File> file;
  const int error_number = files.open(path, Links::follow, file);
  if (error_number == EISDIR) throw unreadable(ErrorKind::no_input, path, "it is a directory");
  if (error_number == EINVAL) throw unreadable(ErrorKind::no_input, path, "it is not a regular file");
  require_read(error_number, path);
  return file;
}

std::string read_file(const std::string& path, uint64_t max_bytes, FileSystem& files) {
  const std::unique_ptr<File> file = open_to_read(path, files);
  uint64_t size = 0;
  require_read(file->size(size), path);
  if (size > max_bytes) {
    throw unreadable(
        ErrorKind::data, path,
        format("it has {}, more than the limit of {}", bytes_text(double(size)), bytes_text(double(max_bytes))));
  }
  std::string content(size, '\0');
  uint64_t done = 0;
  for (uint64_t got = 1; done < size && got > 0; done += got) {
    require_read(file->read(content.data() + done, size - done, got), path);
  }
  content.resize(done);
  return content;
}

bool file_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

std::string temporary_folder() {
  const char* const given = std::getenv("TMPDIR");
  const std::string folder = given == nullptr || *given == '\0' ? "/tmp" : given;  // an empty one as none
  std::error_code problem;
  if (std::filesystem::is_directory(folder, problem)) return folder;
  throw Error(ErrorKind::cannot_create,
              format("temporary files cannot be written: {} is not a folder", printable(folder)),
              "set TMPDIR to a folder that you can write to");
}

std::string find_beside_program(const std::string& name, const std::string& installed) {
  std::error_code problem, ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem) {
    throw Error(ErrorKind::os, format("{} cannot be found: /proc/self/exe cannot be read", name),
                "mount /proc: containers and chroots may lack it");
  }
  const std::filesystem::path folder = self.parent_path();
  for (const std::filesystem::path& candidate : {folder / name, folder / installed / name}) {
    if (std::filesystem::exists(candidate, ignored)) return candidate.string();
  }
  return "";
}

uint64_t free_bytes(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) return 0;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

Error output_error(int error_number, const std::string& action, const std::string& path, ErrorKind otherwise) {
  const std::string ending = temporary_of("");
  const bool is_temporary = path.size() > ending.size() && ends_with(path, ending);
  const std::string shown = printable(is_temporary ? path.substr(0, path.size() - ending.size()) : path);
  if (error_number == EINVAL) return {otherwise, "cannot " + action + " " + shown + ": it is not a regular file"};
  if (error_number == ELOOP) {
    return {ErrorKind::cannot_create,
            "cannot " + action + " " + shown + ": it is a symbolic link, which may lead out of the run",
            "remove it, or put the file itself there"};
  }
  if (error_number != ENOENT && error_number != ESTALE) return errno_error(error_number, action, shown, otherwise);
  const bool is_folder_there = error_number == ENOENT && file_exists(parent_of(path));  // such as /proc
  return {is_folder_there ? ErrorKind::cannot_create : otherwise,
          "cannot " + action + " " + shown + ": " + std::strerror(error_number),
          is_folder_there ? "its folder takes no new files: choose another"
                          : "its folder is not there: make it, or look who removed or moved it"};
}

CheckedWriter::CheckedWriter(std::string path, FileSystem& files) : files_(files), path_(std::move(path)) {
  const int error_number = files_.create(path_, file_);
  const bool is_folder_gone = error_number == ENOENT || error_number == ESTALE;
  require(error_number, "create", path_, is_folder_gone ? ErrorKind::io : ErrorKind::cannot_create);
}

CheckedWriter::~CheckedWriter() {
  if (finished_) return;
  file_.reset();
  files_.remove(path_);
}

void CheckedWriter::write(const void* bytes, uint64_t count) {
  require(file_->write(bytes, count), "write", path_, ErrorKind::io);
}

void CheckedWriter::finish() {
  require(file_->sync(), "sync", path_, ErrorKind::io);
  require(file_->close(), "close", path_, ErrorKind::io);
  finished_ = true;
}

std::string parent_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_of(const std::string& path) { return format("{}.tmp-{}", path, ::getpid()); }

std::string file_uri(const std::string& path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  std::string uri = "file://";
  for (const char c : path) {
    const bool is_plain = kPlain.find(c) != std::string_view::npos;
    uri += is_plain ? std::string(1, c) : format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

std::string path_of_file_uri(std::string_view uri) {
  constexpr std::string_view kStart = "file:///";
  if (uri.substr(0, kStart.size()) != kStart) return "";
  std::string path;
  for (size_t at = kStart.size() - 1; at < uri.size(); ++at) {
    unsigned char byte = static_cast<unsigned char>(uri[at]);
    if (byte == '%') {
      const char* const end = uri.data() + std::min(at + 3, uri.size());
      const auto [stop, error] = std::from_chars(uri.data() + at + 1, end, byte, 16);
      if (error != std::errc() || stop != uri.data() + at + 3) return "";
      at += 2;
    }
    if (byte == 0) return "";  // would end the path early
    path += static_cast<char>(byte);
  }
  return path;
}

void write_file_atomically(const std::string& path, std::string_view content, bool durable, FileSystem& files) {
  const std::string temporary = temporary_of(path);
  files.remove(temporary);  // ours from an earlier process with the same pid, if any
  std::unique_ptr<File> file;
  require(files.create(temporary, file), "create", temporary, ErrorKind::cannot_create);
  try {
    require(file->write(content.data(), content.size()), "write", temporary, ErrorKind::io);
    if (durable) require(file->sync(), "sync", temporary, ErrorKind::io);
    require(file->close(), "close", temporary, ErrorKind::io);
    require(files.rename(temporary, path), "replace", path, ErrorKind::io);
  } catch (...) {
    file.reset();
    files.remove(temporary);
    throw;
  }
  if (durable) sync_directory(parent_of(path), files);
}

void remove_temporaries_of(const std::string& path, FileSystem& files) {
  const std::string parent = parent_of(path), prefix = path.substr(path.rfind('/') + 1) + ".tmp-";
  std::vector<DirectoryEntry> entries;
  files.list(parent, entries);  // where that fails, writing reports the reason
  for (const DirectoryEntry& entry : entries) {
    const std::string process = entry.name.substr(std::min(prefix.size(), entry.name.size()));
    const bool is_number = process.size() < 10 && process.find_first_not_of("0123456789") == std::string::npos;
    if (entry.name.rfind(prefix, 0) != 0 || process.empty() || !is_number) continue;
    if (::kill(std::stoi(process), 0) != 0 && errno == ESRCH) remove_tree(parent + "/" + entry.name, files);
  }
}

void append_file(const std::string& path, std::string_view content, bool durable, FileSystem& files) {
  std::unique_ptr<File> file;
  require(files.append(path, file), "open", path, ErrorKind::io);
  uint64_t before = 0;
  require(file->size(before), "look at", path, ErrorKind::io);
  if (const int error_number = file->write(content.data(), content.size()); error_number != 0) {
    file->truncate(before);  // as well as it goes: whoever reads or resumes ignores half a line
    require(error_number, "write", path, ErrorKind::io);
  }
  if (durable) require(file->sync(), "sync", path, ErrorKind::io);
  require(file->close(), "close", path, ErrorKind::io);
}

uint64_t cut_half_line(const std::string& path, FileSystem& files) {
  std::unique_ptr<File> file;
  require(files.append(path, file), "open", path, ErrorKind::io);
  std::vector<char> block(64 << 10);
  uint64_t bytes = 0, whole = 0, got = 0;  // read so far, up to the last newline, in this block
  do {
    require(file->read(block.data(), block.size(), got), "read", path, ErrorKind::io);
    const auto newline = std::string_view(block.data(), got).find_last_of('\n');
    if (newline != std::string_view::npos) whole = bytes + newline + 1;
    bytes += got;
  } while (got > 0);
  if (whole < bytes) require(file->truncate(whole), "cut", path, ErrorKind::io);
  require(file->close(), "close", path, ErrorKind::io);
  return bytes - whole;
}

void sync_directory(const std::string& directory, FileSystem& files) {
  require(files.sync_directory(directory), "sync", directory, ErrorKind::io);
}

void make_directories(const std::string& directory, FileSystem& files) {
  if (directory.empty()) throw Error(ErrorKind::cannot_create, "cannot create a folder without a name");
  for (size_t end = directory.find('/', 1);; end = directory.find('/', end + 1)) {
    const std::string part = directory.substr(0, end);
    const int error_number = files.make_directory(part);
    if (error_number == 0) {
      sync_directory(parent_of(part), files);  // or a power loss could take the folder and all that is in it
    } else if (error_number != EEXIST) {
      throw errno_error(error_number, "create folder", printable(part), ErrorKind::cannot_create);
    }
    if (end == std::string::npos) break;
  }
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    throw Error(ErrorKind::cannot_create, "cannot create folder " + printable(directory) + ": a file is in the way",
                "choose another folder, or move the file");
  }
}

int remove_tree(const std::string& path, FileSystem& files) {
  int error_number = files.remove(path);
  if (error_number == ENOENT) return 0;
  if (error_number != ENOTEMPTY && error_number != EEXIST) return error_number;
  std::vector<DirectoryEntry> entries;
  if ((error_number = files.list(path, entries)) != 0) return error_number;
  int first = 0;
  for (const DirectoryEntry& entry : entries) {
    error_number = remove_tree(path + "/" + entry.name, files);
    if (first == 0) first = error_number;
  }
  if (first != 0) return first;
  error_number = files.remove(path);
  return error_number == ENOENT ? 0 : error_number;
}

LockFile::LockFile(const std::string& path, const std::string& what, const std::string& hint) {
  fd_ = open_retrying(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);  // who can open it could hold it
  if (fd_ < 0) throw output_error(errno, "create", path, ErrorKind::cannot_create);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  int locked;
  do {
    locked = ::fcntl(fd_, F_OFD_SETLK, &whole);
  } while (locked != 0 && errno == EINTR);
  if (locked != 0) {
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
  const std::string holder = format("pid {} on {}", ::getpid(), host_name());
  // The content of the file only names the holder; the lock itself is the kernel's.
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, holder.data(), holder.size(), 0) < 0) {
    const int error_number = errno;
    ::close(fd_);
    throw errno_error(error_number, "write", printable(path), ErrorKind::io);
  }
}

LockFile::~LockFile() {
  if (fd_ >= 0) ::close(fd_);
}

LineReader::LineReader(std::string path, uint64_t max_line_bytes, FileSystem& files)
    : path_(std::move(path)),
      max_line_bytes_(max_line_bytes),
      file_(open_to_read(path_, files)),
      block_(size_t{64} << 10) {}

bool LineReader::next(std::string& line) {
  line.clear();
  ++number_;
  for (bool is_begun = false;; is_begun = true) {
    if (at_ == filled_ && !fill()) return is_begun;
    const char* const begin = block_.data() + at_;
    const char* const block_end = block_.data() + filled_;
    const char* const line_end = std::find(begin, block_end, '\n');
    if (line.size() + static_cast<uint64_t>(line_end - begin) > max_line_bytes_) {
      throw Error(ErrorKind::data,
                  format("{}:{}: line longer than {} bytes", printable(path_), number_, max_line_bytes_));
    }
    line.append(begin, line_end);
    at_ = static_cast<size_t>(line_end - block_.data());
    if (line_end == block_end) continue;
    ++at_;  // behind the LF
    return true;
  }
}

/// False at the end of the file.
bool LineReader::fill() {
  uint64_t got = 0;
  const int error_number = file_->read(block_.data(), block_.size(), got);
  if (error_number != 0) throw errno_error(error_number, "read", printable(path_), ErrorKind::io);
  at_ = 0;
  filled_ = static_cast<size_t>(got);
  return got > 0;
}

}  // namespace stoker::core
