// SPDX-License-Identifier: Apache-2.0
// Finds, on a CPU, what would make the host wait for a device: numbers that are read out of tensors, operations whose
// result has a size that depends on numbers, copies to the host.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stoker::fixtures {

/// Counts syncs of the thread that made it, while it lives; on a CPU gradients are computed there, too. One at a time.
class HiddenSyncs {
 public:
  HiddenSyncs() {
    current() = this;
    handle_ =
        at::addGlobalCallback(at::RecordFunctionCallback(&begin).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~HiddenSyncs() {
    at::removeCallback(handle_);
    current() = nullptr;
  }
  HiddenSyncs& operator=(HiddenSyncs&&) = delete;  // not copied, not moved

  /// Names of the operations since the last call, in order.
  std::vector<std::string> take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(names_, {});
  }

 private:
  /// item() asks for _local_scalar_dense, and so does is_nonzero: each counts once, as that.
  static bool reads_numbers(const std::string& name) {
    static const std::set<std::string> kNames = {"aten::_local_scalar_dense",
                                                 "aten::nonzero",
                                                 "aten::masked_select",
                                                 "aten::equal",
                                                 "aten::_unique2",
                                                 "aten::unique_dim",
                                                 "aten::unique_consecutive",
                                                 "aten::bincount",
                                                 "aten::allclose"};
    return kNames.count(name) > 0;
  }
  static bool copies_to_host(const at::RecordFunction& function) {
    // to(dtype, layout, device, pin_memory, non_blocking, copy, memory_format), of which the device alone is given.
    // With a type it makes numbers of another one, where they are.
    if (std::string(function.name()) != "aten::to" || function.inputs().size() != 8) return false;
    const c10::IValue &type = function.inputs()[1], &device = function.inputs()[3];
    return type.isNone() && device.isDevice() && device.toDevice().is_cpu() && !function.inputs()[5].toBool();
  }
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    HiddenSyncs* const own = current();
    if (own && std::this_thread::get_id() == own->thread_ &&
        (reads_numbers(function.name()) || copies_to_host(function))) {
      const std::lock_guard<std::mutex> lock(own->mutex_);
      own->names_.emplace_back(function.name());
    }
    return nullptr;
  }
  static HiddenSyncs*& current() {
    static HiddenSyncs* own = nullptr;
    return own;
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  at::CallbackHandle handle_;
  std::mutex mutex_;
  std::vector<std::string> names_;
};

}  // namespace stoker::fixtures
