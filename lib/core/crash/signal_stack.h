// SPDX-License-Identifier: Apache-2.0
// A stack of its own for signal handlers: a thread that has used up its stack can then still report that.
#pragma once

#include <cstddef>

namespace stoker::core {

/// For the calling thread, as long as this lives. Without enable_signal_stacks() nothing: a program that uses this
/// library may have its own.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_ = nullptr;
};

/// From now on threads that request one get one; this thread has one until the process ends.
void enable_signal_stacks();

}  // namespace stoker::core
