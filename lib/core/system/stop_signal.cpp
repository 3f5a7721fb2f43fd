// SPDX-License-Identifier: Apache-2.0
#include "core/system/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace stoker::core {
namespace {

std::atomic<int> g_stop_signal{0};
std::atomic<int> g_interrupts{0};
std::atomic<bool> g_save_requested{false};
static_assert(std::atomic<int>::is_always_lock_free, "signal handlers may only touch lock-free atomics");

void on_stop_signal(int signal_number) {
  if (signal_number == SIGINT && g_interrupts.fetch_add(1) >= 1) ::_exit(130);
  int none = 0;
  g_stop_signal.compare_exchange_strong(none, signal_number);
}

void on_save_signal(int) { g_save_requested.store(true); }

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal_number, &action, nullptr);
}

/// For this thread.
void change_mask(int how) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal_number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP}) sigaddset(&signals, signal_number);
  ::sigprocmask(how, &signals, nullptr);
}

}  // namespace

void install_stop_signals() {
  handle(SIGTERM, on_stop_signal);
  handle(SIGINT, on_stop_signal);
  handle(SIGUSR1, on_stop_signal);
  handle(SIGUSR2, on_save_signal);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGHUP, ::isatty(STDOUT_FILENO) ? on_stop_signal : SIG_IGN);
  change_mask(SIG_UNBLOCK);
}

void hold_stop_signals() { change_mask(SIG_BLOCK); }

bool stop_requested() { return g_stop_signal.load(std::memory_order_relaxed) != 0; }

std::string stop_signal_name() {
  switch (g_stop_signal.load()) {
    case 0: return "";
    case SIGTERM: return "TERM";
    case SIGINT: return "INT";
    case SIGUSR1: return "USR1";
    case SIGHUP: return "HUP";
    default: return "signal " + std::to_string(g_stop_signal.load());
  }
}

bool take_save_request() { return g_save_requested.exchange(false); }

void request_stop(int signal_number) { g_stop_signal.store(signal_number); }

}  // namespace stoker::core
