// SPDX-License-Identifier: Apache-2.0
// Counts what LibTorch's dispatcher is requested: on a device each operation costs the host some microseconds, and most
// of them are a launch.
#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace stoker::fixtures {

/// Operations of all threads while it lives. What an operation on a list of tensors asks for inside counts as that one
/// operation: on a CPU it is a loop over the tensors, on a device a few launches.
class DispatchedOperations {
 public:
  DispatchedOperations() {
    counting() = this;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::FUNCTION}));
  }
  ~DispatchedOperations() {
    at::removeCallback(handle_);
    counting() = nullptr;
  }
  DispatchedOperations& operator=(DispatchedOperations&&) = delete;  // not copied, not moved

  int64_t count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    int64_t all = 0;
    for (const auto& [name, times] : by_name_) all += times;
    return all;
  }
  std::map<std::string, int64_t> by_name() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return by_name_;
  }

 private:
  static bool takes_lists(const char* name) {
    return std::strncmp(name, "aten::_foreach_", 15) == 0 || std::strncmp(name, "aten::_fused_", 13) == 0;
  }
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
    DispatchedOperations* const own = counting();
    if (!own) return nullptr;
    if (inside_list() == 0) {
      const std::lock_guard<std::mutex> lock(own->mutex_);
      ++own->by_name_[function.name()];
    }
    if (takes_lists(function.name())) ++inside_list();
    return nullptr;
  }
  static void end(const at::RecordFunction& function, at::ObserverContext*) {
    if (takes_lists(function.name())) --inside_list();
  }
  static DispatchedOperations*& counting() {
    static DispatchedOperations* own = nullptr;
    return own;
  }
  static int& inside_list() {
    thread_local int depth = 0;
    return depth;
  }

  at::CallbackHandle handle_;
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> by_name_;
};

template <typename Work>
int64_t operations_of(const Work& work) {
  const DispatchedOperations operations;
  work();
  return operations.count();
}

}  // namespace stoker::fixtures
