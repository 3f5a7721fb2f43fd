// SPDX-License-Identifier: Apache-2.0
// A stack of its own for signal handlers: a thread that has used up its stack can then still report that.
#pragma once

#include <signal.h>

#include <cstddef>

namespace stoker::core {

/// For the calling thread, as long as this lives. Without enable_signal_stacks() nothing: a program that uses this
/// library may have its own.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack& operator=(SignalStack&&) = delete;  // not copied, not moved

 private:
  void* memory_ = nullptr;
};

/// From now on threads that request one get one; this thread has one until the process ends.
void enable_signal_stacks();

// Signals by which a fault of a program ends it, their names and codes.

struct FaultSignal {
  int number;
  const char* name;   ///< without "SIG"
  const char* cause;  ///< in words of users
};

inline constexpr FaultSignal kFaultSignals[] = {
    {SIGFPE, "FPE", "arithmetic without a result, such as an integer divided by zero"},
    {SIGILL, "ILL", "an instruction that this CPU does not have"},
    {SIGBUS, "BUS", "memory whose file is cut off or cannot be read"},
    {SIGSEGV, "SEGV", "memory that is not the program's"},
    {SIGABRT, "ABRT", "abort() was called"},
};

/// Exit code after the signal, as shells have it.
constexpr int fault_exit_code(int signal_number) { return 128 + signal_number; }

/// nullptr: no process ends with this code because of a fault.
constexpr const FaultSignal* fault_of_exit_code(int exit_code) {
  for (const FaultSignal& fault : kFaultSignals) {
    if (exit_code == fault_exit_code(fault.number)) return &fault;
  }
  return nullptr;
}

/// All but these: what a thread may hold that leaves signals to the main thread. A fault whose signal is held ends the
/// process without a word.
inline sigset_t all_but_faults() {
  sigset_t signals;
  sigfillset(&signals);
  for (const FaultSignal& fault : kFaultSignals) sigdelset(&signals, fault.number);
  return signals;
}

}  // namespace stoker::core
