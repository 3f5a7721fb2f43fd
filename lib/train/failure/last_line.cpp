// SPDX-License-Identifier: Apache-2.0
#include "train/failure/last_line.h"

#include <c10/util/Exception.h>

#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "engine/device/out_of_memory.h"
#include "train/failure/failure.h"

namespace stoker::train {
namespace {

[[noreturn]] void leave(const core::Error& error) {
  core::log_error("{}", error.text());
  const int exit_code = core::exit_code(error.kind());
  write_last_line(core::format("train: exit={} reason=error", exit_code));
  std::_Exit(exit_code);
}

[[noreturn]] void leave_on_terminate() {
  std::string cause = "an exception where none may be thrown";
  if (const std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::exception& error) {
      leave_if_device_failed(error);
      cause = engine::short_text_of(error);
    } catch (...) {
    }
  }
  leave({core::ErrorKind::bug, "the program ended itself: " + cause, "please report it with the lines above"});
}

}  // namespace

void write_last_line(const std::string& line) {
  core::flush_log();
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
}

bool is_device_failure(const std::exception& error) {
  if (dynamic_cast<const c10::Error*>(&error) == nullptr || engine::is_out_of_memory(error)) return false;
  const std::string text = engine::short_text_of(error);
  for (const char* words : {"CUDA error", "cuDNN error", "CUDA driver error", "cublasLt error"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

void leave_if_device_failed(const std::exception& error) {
  if (is_device_failure(error)) leave(device_failure(error));
}

void install_terminate_handler() { std::set_terminate(leave_on_terminate); }

}  // namespace stoker::train
