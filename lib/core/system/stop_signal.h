// SPDX-License-Identifier: Apache-2.0
// Signals become flags that long-running work polls: nothing happens inside a handler but a store.
//   TERM, INT, HUP (on a terminal), USR1: finish the update, save, stop.   USR2: save and continue.
//   A second INT leaves at once with 130. PIPE is ignored. HUP without a terminal is ignored.
#pragma once

#include <string>

namespace stoker::core {

/// Installs the handlers, and lets signals through that were held. Call once, before the first side effect.
void install_stop_signals();
/// Signals wait until install_stop_signals(), also that of a program that this process becomes. Only system calls: may
/// be called between fork and exec.
void hold_stop_signals();
/// True once a stop was requested. Cheap; safe from any thread.
bool stop_requested();
/// The signal that requested a stop, without "SIG" ("TERM"), or "" when none did.
std::string stop_signal_name();
/// True once per SIGUSR2 received since the last call.
bool take_save_request();
/// Requests a stop as if `signal_number` had arrived (deadlines, tests). 0 clears the request.
void request_stop(int signal_number);

/// Thrown by work that is not inside an update (scan, decode probe, evaluation) when a stop is requested.
struct StopRequested {};
/// Throws StopRequested when a stop was requested.
inline void throw_if_stopped() {
  if (stop_requested()) throw StopRequested{};
}

}  // namespace stoker::core
