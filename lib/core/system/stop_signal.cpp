// SPDX-License-Identifier: Apache-2.0
#include "core/system/stop_signal.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>

namespace stoker::core {
namespace {

std::atomic<int> g_stop_signal{0};
std::atomic<int> g_interrupts{0};
std::atomic<bool> g_save_requested{false};
std::atomic<uint64_t> g_added{0};  // a bit for each number
static_assert(std::atomic<int>::is_always_lock_free, "signal handlers may only touch lock-free atomics");

constexpr struct {
  const char* name;
  int number;
} kSignals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
                {"TERM", SIGTERM}, {"XCPU", SIGXCPU}, {"URG", SIGURG},   {"PWR", SIGPWR},   {"CONT", SIGCONT}};

void on_stop_signal(int signal_number) {
  if (signal_number == SIGINT && g_interrupts.fetch_add(1) >= 1) {  // perhaps a driver that never returns
    constexpr char kLastLine[] = "\ntrain: exit=130 reason=signal:INT\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kLastLine, sizeof kLastLine - 1);
    ::_exit(130);
  }
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

int stop_signal_number(const std::string& name) {
  for (const auto& signal : kSignals) {
    if (name == signal.name || name == std::string("SIG") + signal.name) return signal.number;
  }
  return 0;
}

std::vector<std::string> stop_signal_names() {
  std::vector<std::string> names;
  for (const auto& signal : kSignals) names.emplace_back(signal.name);
  return names;
}

void add_stop_signals(const std::vector<int>& numbers) {
  for (const int number : numbers) {
    g_added.fetch_or(uint64_t{1} << number);
    handle(number, on_stop_signal);
    if (number == SIGUSR2 && take_save_request()) on_stop_signal(number);
  }
}

bool is_added_stop_signal(int number) { return (g_added.load() >> number & 1) != 0; }

std::string stop_signal_name() {
  const int number = g_stop_signal.load();
  if (number == 0) return "";
  if (number == SIGALRM) return kJobEnd;
  const auto* const found =
      std::find_if(std::begin(kSignals), std::end(kSignals), [&](const auto& one) { return one.number == number; });
  return found == std::end(kSignals) ? "signal " + std::to_string(number) : found->name;
}

std::string stop_reason(const std::string& signal_name) {
  return signal_name == kJobEnd ? signal_name : "signal:" + signal_name;
}

void request_stop_in(double seconds) {
  handle(SIGALRM, on_stop_signal);
  const double whole = std::floor(std::max(seconds, 0.01));
  struct itimerval timer {};
  timer.it_value.tv_sec = static_cast<time_t>(whole);
  timer.it_value.tv_usec = static_cast<suseconds_t>(1e6 * (std::max(seconds, 0.01) - whole));
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

bool take_save_request() { return g_save_requested.exchange(false); }

void request_stop(int signal_number) { g_stop_signal.store(signal_number); }

void sleep_unless_stopped(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    throw_if_stopped();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace stoker::core
