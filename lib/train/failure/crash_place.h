// SPDX-License-Identifier: Apache-2.0
// Where a fault happened: which file holds the instruction, by system calls and unwinding alone.
#pragma once

#include <signal.h>

namespace stoker::train {

struct CrashPlace {
  const char* library = "none";  ///< file of the instruction; "none": the signal was sent from outside
  const char* caller = nullptr;  ///< where that is a library of the language: who called it, if that is known
  pid_t sender = 0;              ///< of a signal from outside
};

/// Loads what find_crash_place() needs, and notes who this program is.
void prepare_crash_place();
/// In a signal handler with SA_SIGINFO, once.
CrashPlace find_crash_place(int signal_number, const siginfo_t& info, const void* context);

}  // namespace stoker::train
