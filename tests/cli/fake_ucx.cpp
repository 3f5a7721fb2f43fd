// SPDX-License-Identifier: Apache-2.0
// Takes the place of UCX's libraries libucs and libucs_signal (LD_PRELOAD): handles the signals of faults from when it
// is loaded, unless UCX_HANDLE_ERRORS is "none", and discards the handlers of others until it is turned off.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSignals[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE};
bool g_handles = false;

int original(int number, const struct sigaction* action, struct sigaction* before) {
  using Call = int (*)(int, const struct sigaction*, struct sigaction*);
  static const Call call = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "sigaction"));
  return call(number, action, before);
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int number : kSignals) original(number, &action, nullptr);
}

void print_backtrace(int) {
  constexpr char kText[] = "==== backtrace of UCX ====\n";
  static_cast<void>(!::write(STDERR_FILENO, kText, sizeof kText - 1));
  ::_exit(1);
}

[[gnu::constructor]] void begin() {
  const char* const asked = std::getenv("UCX_HANDLE_ERRORS");
  if (std::strcmp(program_invocation_short_name, "train") != 0) return;
  if (asked != nullptr && std::strcmp(asked, "none") == 0) return;
  handle(print_backtrace);
  g_handles = true;
}

}  // namespace

extern "C" void ucs_debug_disable_signals() {
  if (g_handles) handle(SIG_DFL);
  g_handles = false;
}

extern "C" int sigaction(int number, const struct sigaction* action, struct sigaction* before) noexcept {
  bool is_mine = false;
  for (const int mine : kSignals) is_mine |= g_handles && number == mine;
  return original(number, is_mine ? nullptr : action, before);
}
