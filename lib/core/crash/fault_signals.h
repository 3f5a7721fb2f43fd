// SPDX-License-Identifier: Apache-2.0
// Signals by which a fault of a program ends it, their names and codes.
#pragma once

#include <signal.h>

namespace stoker::core {

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
