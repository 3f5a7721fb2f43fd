// SPDX-License-Identifier: Apache-2.0
#include "train/failure/last_line.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>

#include "core/format.h"
#include "core/log.h"
#include "core/text/json.h"

namespace stoker::train {
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
  if (dynamic_cast<const core::Json::exception*>(&exception) != nullptr) {  // of a file, or of text that is no UTF-8
    return Error(ErrorKind::data, core::format("what was read does not make sense: {}", exception.what()));
  }
  return Error(ErrorKind::bug, exception.what());
}

}  // namespace stoker::train
