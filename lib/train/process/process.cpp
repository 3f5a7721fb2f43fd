// SPDX-License-Identifier: Apache-2.0
#include "train/process/process.h"

#include <c10/util/Exception.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <limits>

#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/device/torch_compat.h"
#include "engine/memory/activation_arena.h"
#include "train/failure/crash_handler.h"
#include "train/failure/result_output.h"
#include "train/process/failure.h"

namespace stoker::train {
namespace {

void raise_open_file_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Past a limit of the shell (ulimit -f) a write then fails like one on a full disk, and the run ends in order.
void survive_file_size_limit() { std::signal(SIGXFSZ, SIG_IGN); }

/// Activations are allocated and freed every update. By default glibc gives large blocks back to the kernel each
/// time, and every page of them faults in again: a third of a training step on a CPU for some networks.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // bytes; glibc's maximum
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_TOP_PAD, 64 << 20);  // bytes: the heap grows in steps of this
  // Each arena keeps what its threads freed; more of them would make memory grow with workers.
  ::mallopt(M_ARENA_MAX, 2);
}

class WarningsToLog : public c10::WarningHandler {
 public:
#if STOKER_TORCH_AT_LEAST(2, 0)
  void process(const c10::Warning& warning) override { core::log_warning("LibTorch: {}", warning.msg()); }
#else
  void process(const c10::SourceLocation&, const std::string& text, const bool) override {
    core::log_warning("LibTorch: {}", text);
  }
#endif
};

void send_torch_warnings_to_log() {
  static WarningsToLog handler;
#if STOKER_TORCH_AT_LEAST(2, 0)
  c10::WarningUtils::set_warning_handler(&handler);
#else
  c10::Warning::set_warning_handler(&handler);
#endif
}

/// `train` has become this program: ps and pkill know it by that name.
void take_name() { ::prctl(PR_SET_NAME, "train"); }

}  // namespace

void prepare_process() {
  take_name();
  reopen_standard_descriptors();
  install_terminate_handler();
  install_crash_handler();
  core::install_stop_signals();
  raise_open_file_limit();
  survive_file_size_limit();
  keep_freed_memory();
  engine::install_activation_arena();
  send_torch_warnings_to_log();
}

}  // namespace stoker::train
