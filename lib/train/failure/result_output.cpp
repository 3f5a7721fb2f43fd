// SPDX-License-Identifier: Apache-2.0
#include "train/failure/result_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"

namespace stoker::train {
namespace {

/// A rename would replace the device itself by a file: /dev/stdout, /dev/null, a named pipe.
bool is_device_or_pipe(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/// Checks each step: what is buffered fails only when it is flushed.
void write_stream(std::FILE* stream, const std::string& content, const std::string& name) {
  errno = 0;
  if (std::fwrite(content.data(), 1, content.size(), stream) == content.size() && std::fflush(stream) == 0) return;
  if (errno == EPIPE) return;  // a reader that has seen enough: train predict ... | head
  throw core::errno_error(errno, "write", name, core::ErrorKind::io);
}

}  // namespace

void log_to_stderr() {
  core::set_console_writer([](core::LogLevel level, std::string_view line) {
    const char* const prefix = level == core::LogLevel::warning ? "warning: "
                               : level == core::LogLevel::error ? "error: "
                                                                : "";
    std::fprintf(stderr, "%s%.*s\n", prefix, static_cast<int>(line.size()), line.data());
  });
}

void reopen_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    const int null = ::open("/dev/null", O_RDWR);  // gets the lowest free number, which is fd
    if (null >= 0 && null != fd) ::close(null);
  }
}

void write_page(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  if (errno != EPIPE) throw core::errno_error(errno, "write", "standard output", core::ErrorKind::io);
}

ResultStream::ResultStream(const std::string& path)
    : path_(path == "-" ? "" : path), temporary_(core::format("{}.tmp-{}", path_, ::getpid())) {
  if (path_.empty()) return;
  if (is_device_or_pipe(path_)) {
    device_.reset(std::fopen(path_.c_str(), "we"));
    if (!device_) throw core::errno_error(errno, "open", core::printable(path_), core::ErrorKind::io);
    return;
  }
  if (::access(core::parent_of(path_).c_str(), W_OK | X_OK) != 0) {
    throw core::output_error(errno, "create", path_, core::ErrorKind::cannot_create);
  }
  core::remove_temporaries_of(path_);
  file_ = std::make_unique<core::CheckedWriter>(temporary_);
}

ResultStream::~ResultStream() = default;

void ResultStream::write(const std::string& text) {
  if (path_.empty()) return write_result("-", text);
  if (device_) return write_stream(device_.get(), text, core::printable(path_));
  file_->write(text.data(), text.size());
}

void ResultStream::finish() {
  device_.reset();
  if (!file_) return;
  file_->finish();
  file_.reset();
  if (const int error_number = core::posix_file_system().rename(temporary_, path_); error_number != 0) {
    core::posix_file_system().remove(temporary_);
    throw core::output_error(error_number, "replace", path_, core::ErrorKind::cannot_create);
  }
  core::sync_directory(core::parent_of(path_));
}

void write_result(const std::string& path, const std::string& content) {
  if (path.empty() || path == "-") {
    return write_page(::isatty(STDOUT_FILENO) == 1 ? core::terminal_text(content) : content);
  }
  if (!is_device_or_pipe(path)) {
    core::remove_temporaries_of(path);
    return core::write_file_atomically(path, content, /*durable=*/true);
  }
  std::FILE* const stream = std::fopen(path.c_str(), "we");
  if (stream == nullptr) throw core::errno_error(errno, "open", core::printable(path), core::ErrorKind::io);
  try {
    write_stream(stream, content, core::printable(path));
  } catch (...) {
    std::fclose(stream);
    throw;
  }
  std::fclose(stream);
}

}  // namespace stoker::train
