// SPDX-License-Identifier: Apache-2.0
// LibTorch's profiler records the thread that switched it on, and the threads of autograd. This takes it along to
// threads of ours.
#pragma once

#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/api.h>

#include <memory>

namespace stoker::engine {

/// What records the operators of the thread that makes this. While nothing does, it does nothing.
class RecordedThreads {
 public:
  RecordedThreads() : is_recording_(torch::profiler::impl::profilerEnabled()) {
    if (!is_recording_) return;
    callbacks_ = at::get_record_function_tls_();
    state_ = c10::ThreadLocalDebugInfo::current();
  }

  /// For its lifetime the calling thread is recorded, too. Ends before the recording does.
  class Scope {
   public:
    explicit Scope(const RecordedThreads& threads) : is_recording_(threads.is_recording_) {
      if (!is_recording_) return;
      callbacks_before_ = at::get_record_function_tls_();
      state_before_ = c10::ThreadLocalDebugInfo::current();
      at::set_record_function_tls_(threads.callbacks_);
      c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(threads.state_);
    }
    ~Scope() {
      if (!is_recording_) return;
      at::set_record_function_tls_(callbacks_before_);
      c10::ThreadLocalDebugInfo::_forceCurrentDebugInfo(state_before_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const bool is_recording_;
    at::RecordFunctionTLS callbacks_before_;
    std::shared_ptr<c10::ThreadLocalDebugInfo> state_before_;
  };

 private:
  const bool is_recording_;
  at::RecordFunctionTLS callbacks_;
  std::shared_ptr<c10::ThreadLocalDebugInfo> state_;
};

}  // namespace stoker::engine
