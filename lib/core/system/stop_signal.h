// SPDX-License-Identifier: Apache-2.0
// Signals become flags that long-running work polls: nothing happens inside a handler but a store.
//   TERM, INT, HUP (on a terminal), USR1: finish the update, save, stop.   USR2: save and continue.
//   add_stop_signals(): others that stop; request_stop_in(): a stop at a time, by ALRM.
//   A second INT writes the last line and leaves at once with 130. PIPE is ignored. HUP without a terminal is ignored.
#pragma once

#include <string>
#include <vector>

namespace stoker::core {

/// Installs the handlers, and lets signals through that were held. Call once, before the first side effect.
void install_stop_signals();
/// Signals wait until install_stop_signals(), also that of a program that this process becomes. Only system calls: may
/// be called between fork and exec.
void hold_stop_signals();
/// The number of a signal that may stop a run, by its name as kill(1) has it, with or without SIG. 0: none.
int stop_signal_number(const std::string& name);
/// All names that stop_signal_number() accepts.
std::vector<std::string> stop_signal_names();
/// These request a stop as well from now on, whatever they did; one that came before as a request to save counts.
void add_stop_signals(const std::vector<int>& numbers);
/// Whether add_stop_signals() was given it.
bool is_added_stop_signal(int number);
/// True once a stop was requested. Cheap; safe from any thread.
bool stop_requested();
/// The signal that requested a stop, without "SIG" ("TERM"), kJobEnd for request_stop_in(), or "" when none did.
std::string stop_signal_name();
inline constexpr const char* kJobEnd = "job-end";
/// "signal:TERM", or kJobEnd alone.
std::string stop_reason(const std::string& signal_name);
/// Requests a stop after `seconds`, at least some milliseconds; takes the place of such a request before.
void request_stop_in(double seconds);
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
/// Sleeps, in pieces, so that a stop ends it soon by StopRequested.
void sleep_unless_stopped(double seconds);

}  // namespace stoker::core
