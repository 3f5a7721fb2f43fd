// SPDX-License-Identifier: Apache-2.0
#include "train/failure/result_output.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>
#include <typeinfo>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "core/text/json.h"

namespace stoker::train {
namespace {

/// The end of a path's links.
struct LinkEnd {
  std::filesystem::path file;
  bool is_descriptor = false;  ///< /dev/stdout, /dev/fd/3: whatever is behind it is open already
};

LinkEnd end_of_links(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;
  LinkEnd end{path};
  std::error_code error;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path folder = fs::canonical(core::parent_of(end.file.string()), error);
    if (!error && folder.string().rfind("/proc/", 0) == 0) end.is_descriptor = true;
    const fs::path target = fs::read_symlink(end.file, error);
    if (error || end.is_descriptor) break;
    end.file = target.is_absolute() ? target : end.file.parent_path() / target;
  }
  return end;
}

/// A rename would replace the device itself by a file: /dev/stdout, /dev/null, a named pipe.
bool is_device_or_pipe(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return false;
  return !S_ISREG(info.st_mode) || end_of_links(path).is_descriptor;
}

bool is_standard_output(const std::string& path) {
  struct stat info {
  }, output{};
  return ::stat(path.c_str(), &info) == 0 && ::fstat(STDOUT_FILENO, &output) == 0 && info.st_dev == output.st_dev &&
         info.st_ino == output.st_ino && end_of_links(path).is_descriptor;
}

/// The file that gets the content: what a link leads to, so that the link stays. Empty: standard output.
std::string file_behind(const std::string& path) {
  if (path.empty() || path == "-" || is_standard_output(path)) return "";
  return is_device_or_pipe(path) ? path : end_of_links(path).file.string();
}

/// Checks each step: what is buffered fails only when it is flushed. False: a reader has seen enough (`| head`).
bool write_stream(std::FILE* stream, const std::string& content, const std::string& name) {
  errno = 0;
  if (std::fwrite(content.data(), 1, content.size(), stream) == content.size() && std::fflush(stream) == 0) return true;
  if (errno == EPIPE) return false;
  throw core::errno_error(errno, "write", name, core::ErrorKind::io);
}

}  // namespace

void log_to_stderr() {
  core::set_console_writer([](core::LogLevel level, std::string_view line) {
    std::fprintf(stderr, "%s%.*s\n", core::console_prefix(level), static_cast<int>(line.size()), line.data());
  });
}

void reopen_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    const int null = ::open("/dev/null", O_RDWR);  // gets the lowest free number, which is fd
    if (null >= 0 && null != fd) ::close(null);
  }
}

std::string output_file(const std::string& path) {
  const std::string file = file_behind(path);
  return !file.empty() && is_device_or_pipe(file) ? "" : file;
}

void refuse_output_over_input(const std::string& path, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& results) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path.empty() || path == "-" || !fs::is_regular_file(path, ignored)) return;
  const bool is_result =
      std::any_of(results.begin(), results.end(), [&](const std::string& end) { return core::ends_with(path, end); });
  for (const std::string& named : inputs) {
    const std::string input = !named.empty() && named[0] == '@' ? named.substr(1) : named;
    bool is_read = fs::equivalent(path, input, ignored);
    if (!is_read && !is_result && fs::is_directory(input, ignored)) {
      const fs::path inside = fs::weakly_canonical(path, ignored).lexically_relative(fs::canonical(input, ignored));
      is_read = !inside.empty() && *inside.begin() != "..";
    }
    if (!is_read) continue;
    throw core::Error(
        core::ErrorKind::usage,
        core::format("the output {} would replace what is read: {}", core::printable(path), core::printable(input)),
        "choose another --output");
  }
}

void require_file_output(const std::string& path) {
  const std::string file = output_file(path);
  if (file.empty()) return;
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw core::Error(
        core::ErrorKind::cannot_create, core::format("cannot create {}: it is a folder", core::printable(file)),
        core::format("name a file in it: {}", core::printable((std::filesystem::path(file) / "NAME").string())));
  }
  if (::access(core::parent_of(file).c_str(), W_OK | X_OK) != 0) {
    throw core::output_error(errno, "create", file, core::ErrorKind::cannot_create);
  }
}

void require_folder_output(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path there = fs::absolute(path, ignored).lexically_normal();
  while (!fs::exists(fs::symlink_status(there, ignored)) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, ignored)) {
    throw core::Error(core::ErrorKind::cannot_create,
                      core::format("cannot create folder {}: a file is in the way: {}", core::printable(path),
                                   core::printable(there.string())),
                      "choose another folder, or move the file");
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    throw core::errno_error(errno, "create folder", core::printable(path), core::ErrorKind::cannot_create);
  }
}

bool write_page(const std::string& text) { return write_stream(stdout, text, "standard output"); }

ResultStream::ResultStream(const std::string& path) : path_(file_behind(path)), temporary_(core::temporary_of(path_)) {
  if (path_.empty()) return;
  if (is_device_or_pipe(path_)) {
    device_.reset(std::fopen(path_.c_str(), "ae"));  // a file behind an open descriptor may have content
    if (!device_) throw core::errno_error(errno, "open", core::printable(path_), core::ErrorKind::io);
    return;
  }
  require_file_output(path_);
  core::remove_temporaries_of(path_);
  file_ = std::make_unique<core::CheckedWriter>(temporary_);
}

ResultStream::~ResultStream() {
  if (file_ && core::stop_requested())
    core::log_warning("{} was not written: the command was stopped", core::printable(path_));
}

bool ResultStream::write(const std::string& text) {
  if (path_.empty()) return write_result("-", text);
  if (device_) return write_stream(device_.get(), text, core::printable(path_));
  file_->write(text.data(), text.size());
  return true;
}

void ResultStream::finish() {
  device_.reset();
  if (!file_) return;
  file_->finish();
  file_.reset();
  if (const int error_number = core::posix_file_system().rename(temporary_, path_); error_number != 0) {
    core::posix_file_system().remove(temporary_);
    throw core::output_error(error_number, "replace", path_, core::ErrorKind::io);
  }
  core::sync_directory(core::parent_of(path_));
}

bool write_result(const std::string& path, const std::string& content) {
  if (path.empty() || path == "-") {
    return write_page(::isatty(STDOUT_FILENO) == 1 ? core::terminal_text(content) : content);
  }
  ResultStream stream(path);
  const bool is_wanted = stream.write(content);
  stream.finish();
  return is_wanted;
}

namespace {

using core::Error;
using core::ErrorKind;

/// Threads that cannot be made, and what std::filesystem throws.
Error of_system(const std::system_error& error) {
  if (error.code() == std::errc::resource_unavailable_try_again) {
    return Error(ErrorKind::os, core::format("a thread could not be started: {}", error.what()),
                 "raise the limit on processes (ulimit -u, or the pids limit of the container), or use fewer --threads "
                 "and --num-workers");
  }
  const auto* const about_file = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (about_file == nullptr) return Error(ErrorKind::os, error.what());
  return core::errno_error(error.code().value(), "use", core::printable(about_file->path1().string()), ErrorKind::io);
}

}  // namespace

void write_last_line(const std::string& line) {
  core::flush_log();
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", core::terminal_text(line).c_str());
  std::fflush(stderr);
}

void leave(const core::Error& error) {
  core::log_error("{}", error.text());
  const int exit_code = core::exit_code(error.kind());
  write_last_line(core::format("train: exit={} reason=error", exit_code));
  std::_Exit(exit_code);
}

Error plain_error_of(const std::exception& exception) {
  if (const auto* const error = dynamic_cast<const Error*>(&exception)) return *error;
  if (const auto* const error = dynamic_cast<const std::system_error*>(&exception)) return of_system(*error);
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr)
    return Error(ErrorKind::out_of_memory, "out of memory");
  if (const auto* const error =
          dynamic_cast<const core::Json::exception*>(&exception)) {  // a file, text that is no UTF-8
    return Error(ErrorKind::data, core::format("invalid data: {}", core::problem_text(*error)));
  }
  return Error(ErrorKind::bug, text_or_type(exception, exception.what()));
}

std::string text_or_type(const std::exception& exception, const std::string& text) {
  if (!text.empty()) return text;
  int status = 0;
  char* const name = abi::__cxa_demangle(typeid(exception).name(), nullptr, nullptr, &status);
  std::string of_type = core::format("an error without a message ({})", name ? name : typeid(exception).name());
  std::free(name);
  return of_type;
}

}  // namespace stoker::train
