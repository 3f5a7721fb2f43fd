// SPDX-License-Identifier: Apache-2.0
// STOKER_TEST_SYNC=error: an update that waits for the device ends the run. On CUDA LibTorch itself throws where it
// would wait; on a CPU operations are looked at that would. STOKER_TEST_PLANTED_READ=7 plants one in the seventh
// update.
#include <ATen/Functions.h>

#include <cstdlib>
#include <string>

#include "core/error.h"
#include "core/format.h"
#include "engine/device/without_sync.h"
#include "tests/hidden_syncs.h"

#ifdef STOKER_HOOKS_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace stoker::engine {
namespace {

int64_t updates = 0;  ///< that were looked at

[[noreturn]] void found(const std::string& what) {
  throw core::Error(core::ErrorKind::bug,
                    core::format("update {} of this process waits for the device: {}", updates, what),
                    "STOKER_TEST_SYNC=error lets an update read nothing; a copy that takes longer than two updates is "
                    "waited for, too");
}

bool is_asked_for() {
  const char* const text = std::getenv("STOKER_TEST_SYNC");
  if (!text) return false;
  if (std::string(text) != "error") throw core::Error(core::ErrorKind::usage, "STOKER_TEST_SYNC wants: error");
  return true;
}

void planted_read(const c10::Device& device) {
  const char* const text = std::getenv("STOKER_TEST_PLANTED_READ");
  if (text && std::atoll(text) == updates) at::zeros({1}, at::TensorOptions(device)).item<float>();
}

#ifdef STOKER_HOOKS_CUDA

/// LibTorch's own check, of all threads.
class CudaSyncErrors {
 public:
  CudaSyncErrors() { c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_ERROR); }
  ~CudaSyncErrors() { c10::cuda::warning_state().set_sync_debug_mode(c10::cuda::SyncDebugMode::L_DISABLED); }
  CudaSyncErrors& operator=(CudaSyncErrors&&) = delete;  // not copied, not moved
};

void run_on_cuda(const std::function<void()>& work) {
  try {
    const CudaSyncErrors errors;
    work();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    if (text.find("synchronizing CUDA operation") == std::string::npos) throw;
    found(text);
  }
}

#else

void run_on_cuda(const std::function<void()>& work) { work(); }  // there is none

#endif

}  // namespace

void without_sync(const c10::Device& device, const std::function<void()>& work) {
  if (!is_asked_for()) return work();
  ++updates;
  const auto all = [&] {
    work();
    planted_read(device);
  };
  if (device.is_cuda()) return run_on_cuda(all);
  fixtures::HiddenSyncs syncs;
  all();
  const std::vector<std::string> names = syncs.take();
  if (!names.empty()) found(names.front());
}

}  // namespace stoker::engine
