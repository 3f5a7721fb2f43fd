// SPDX-License-Identifier: Apache-2.0
#include "train/process/failure.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <typeinfo>

#include "config/resolution.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/machine.h"
#include "core/system/stop_signal.h"
#include "engine/device/device.h"
#include "engine/device/torch_compat.h"
#include "engine/memory/activation_arena.h"
#include "train/failure/crash_handler.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;

/// The device of a command; "cpu" where none can be had.
std::string device_of(const config::Options& given) {
  config::Facts facts;
  facts.machine.accelerators = engine::list_accelerators().devices;
  try {
    const std::string device = config::resolve(given, facts).options.device.device;
    // Each of several processes has another one, which it has made the current one of its thread.
    return device == "cpu" ? device : c10::impl::VirtualGuardImpl(torch::kCUDA).getDevice().str();
  } catch (const Error&) {
    return "cpu";
  }
}

/// "this process held 3.1 GB at most, 0.2 GB are free", and the same of its device.
std::string memory_text(const config::Options& given) {
  const auto size_text = [](int64_t bytes) { return core::bytes_text(static_cast<double>(bytes)); };
  std::string text = core::format("this process held {} at most, {} are free",
                                  size_text(core::read_process_memory().peak_resident_bytes),
                                  size_text(core::read_machine_facts().ram_available_bytes));
  const std::string device = device_of(given);
  if (device.rfind("cuda:", 0) != 0) return text;
  const engine::DeviceMemory memory = engine::device_memory(torch::Device(device));
  return text + core::format("; on {} it held {} at most, {} of {} are free", device, size_text(memory.peak_bytes),
                             size_text(memory.free_bytes), size_text(memory.total_bytes));
}

Error out_of_memory(const std::string& cause, const config::Options& given) {
  return Error(
      ErrorKind::out_of_memory, core::format("out of memory: {}; {}", cause, memory_text(given)),
      "train plan with the same options estimates what fits; --auto-micro-batch computes smaller micro-batches by "
      "itself, or "
      "use a smaller --batch-size with more --accumulation-steps: the same update");
}

/// The free memory share of the device of a command; 1 where it is unknown.
double free_share(const config::Options& given) {
  const std::string device = device_of(given);
  return device.rfind("cuda:", 0) == 0 ? engine::free_memory_share(torch::Device(device)) : 1;
}

/// The error of a library for an operation whose result would differ from run to run.
bool is_not_deterministic(const std::string& text) {
  return text.find("does not have a deterministic implementation") != std::string::npos;
}

Error of_torch(const c10::Error& error, const config::Options& given) {
  const std::string text = engine::short_text_of(error);
  core::log_debug("{}", error.what());
  if (is_not_deterministic(text)) {
    return Error(ErrorKind::config, "--deterministic: " + text.substr(0, text.find(". ")),
                 "this network computes something that LibTorch cannot do with the same bits each time on this device: "
                 "leave out --deterministic, choose another --model, or use --device cpu");
  }
  if (text.find("no kernel image is available") != std::string::npos) {
    return Error(ErrorKind::unavailable, "this LibTorch has no code for the device: " + text,
                 "use a LibTorch that was built for it (train check shows both), another --device, or --device cpu");
  }
  if (engine::is_out_of_memory(error, free_share(given))) return out_of_memory(text, given);
  if (is_device_failure(error)) return device_failure(error);
  return Error(ErrorKind::bug, text_or_type(error, text));
}

}  // namespace

Error device_failure(const std::exception& error) {
  return Error(
      ErrorKind::os, "the device failed: " + text_or_type(error, engine::short_text_of(error)),
      "run the same command again: it resumes; dmesg and nvidia-smi -q have details of a card that fails often");
}

namespace {

bool is_lost_connection(const std::system_error& error) {
  for (const std::errc one : {std::errc::connection_reset, std::errc::connection_aborted, std::errc::connection_refused,
                              std::errc::broken_pipe, std::errc::not_connected, std::errc::timed_out,
                              std::errc::host_unreachable, std::errc::network_unreachable, std::errc::network_down}) {
    if (error.code() == one) return true;
  }
  return false;
}

[[noreturn]] void leave_on_terminate() {
  std::string cause = "an exception where none is allowed";
  if (const std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::system_error& error) {
      // c10d's TCPStore has threads whose failed connections nobody catches.
      if (is_lost_connection(error)) {
        leave({core::ErrorKind::peer_lost,
               std::string("a connection between ranks is broken: ") + error.code().message(),
               "look at the other ranks; run the same command again: it resumes"});
      }
      cause = engine::short_text_of(error);
    } catch (const std::exception& error) {
      exit_on_device_failure(error);
      cause = engine::short_text_of(error);
    } catch (...) {
    }
  }
  leave(
      {core::ErrorKind::bug, "the program called std::terminate(): " + cause, "please report it with the lines above"});
}

}  // namespace

bool is_device_failure(const std::exception& error) {
  // cuDNN's, which LibTorch passes on; its header is not needed to build.
  if (std::string(typeid(error).name()).find("cudnn_frontend") != std::string::npos) return true;
  if (dynamic_cast<const c10::Error*>(&error) == nullptr || engine::is_out_of_memory(error)) return false;
  const std::string text = engine::short_text_of(error);
  for (const char* words : {"CUDA error", "cuDNN error", "CUDA driver error", "cublasLt error"}) {
    if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

void exit_on_device_failure(const std::exception& error) {
  if (is_device_failure(error)) leave(device_failure(error));
}

void install_terminate_handler() { std::set_terminate(leave_on_terminate); }

Error error_of(const std::exception& exception, const config::Options& given) {
  if (const auto* const error = dynamic_cast<const Error*>(&exception)) return *error;
  if (const auto* const error = dynamic_cast<const c10::Error*>(&exception)) return of_torch(*error, given);
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) return out_of_memory("of the host", given);
  if (is_device_failure(exception)) return device_failure(exception);
  return plain_error_of(exception);
}

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

/// `train` has become this program: its name in ps and pkill.
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
