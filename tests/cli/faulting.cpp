// SPDX-License-Identifier: Apache-2.0
// A library that crashes the program `train` it is loaded into (LD_PRELOAD), in a call that training makes often:
// clock_gettime(). In the environment:
//   STOKER_FAULT        what happens: a signal ("FPE"), "GENERATED" (SIGILL in code of no file), "STACK" (SIGSEGV)
//   STOKER_FAULT_AFTER  from when on: as soon as this file is there, and the program has begun (it handles SIGTERM even
//                       before, so that SIGSEGV is what is looked at)
//   STOKER_FAULT_THREAD in the thread of this name alone; absent: in any
//   STOKER_FAULT_RANK   of several processes, which one; absent: any
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<bool> g_has_faulted{false};
volatile int g_zero = 0;

[[gnu::noinline]] void divide_by_zero() {
#if defined(__x86_64__)
  g_zero = 100 / g_zero;  // of 1 / x compilers make comparisons
#else
  ::raise(SIGFPE);  // the CPU does not mind
#endif
}

[[gnu::noinline]] void run_no_instruction() {
#if defined(__x86_64__)
  asm volatile("ud2");
#else
  asm volatile(".inst 0");
#endif
}

[[gnu::noinline]] void read_behind_a_file() {
  const int fd = ::memfd_create("empty", 0);
  const void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  g_zero = *static_cast<const volatile int*>(page);
}

[[gnu::noinline]] void write_to_no_memory() {
  static volatile uintptr_t address = 8;
  *reinterpret_cast<volatile int*>(address) = g_zero;
}

[[gnu::noinline]] void call_generated_code() {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#if defined(__x86_64__)
  std::memcpy(page, "\x0f\x0b", 2);
#endif
  ::mprotect(page, 4096, PROT_READ | PROT_EXEC);
  void (*code)() = nullptr;
  std::memcpy(&code, &page, sizeof page);
  code();
  g_zero = 0;  // or the call would be a jump
}

[[gnu::noinline]] int use_up_the_stack(int depth) {
  if (g_zero != 0) return 0;
  volatile char block[4096] = "";
  block[0] = static_cast<char>(depth);
  return use_up_the_stack(depth + 1) + block[0];
}

void fault(const char* what) {
  if (std::strcmp(what, "FPE") == 0) divide_by_zero();
  if (std::strcmp(what, "ILL") == 0) run_no_instruction();
  if (std::strcmp(what, "BUS") == 0) read_behind_a_file();
  if (std::strcmp(what, "SEGV") == 0) write_to_no_memory();
  if (std::strcmp(what, "ABRT") == 0) std::abort();
  if (std::strcmp(what, "GENERATED") == 0) call_generated_code();
  if (std::strcmp(what, "STACK") == 0) g_zero = use_up_the_stack(0);
}

bool handles_faults() {
  struct sigaction now {};
  return ::sigaction(SIGSEGV, nullptr, &now) == 0 && now.sa_handler != SIG_DFL;
}

/// For a clock that libraries read before anything of this one has run: no statics with constructors.
bool may_fault() {
  if (std::strcmp(program_invocation_short_name, "train") != 0)
    return false;  // what `train` starts inherits the library
  const char* const thread = std::getenv("STOKER_FAULT_THREAD");
  char name[16] = "";
  ::prctl(PR_GET_NAME, name);
  if (thread != nullptr && std::strcmp(thread, name) != 0) return false;
  const char* const rank = std::getenv("STOKER_FAULT_RANK");
  const char* const own = std::getenv("RANK");
  return rank == nullptr || (own != nullptr && std::strcmp(rank, own) == 0);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  using Call = int (*)(clockid_t, struct timespec*);
  static const Call original = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int before = errno;
  const char* const what = std::getenv("STOKER_FAULT");
  const char* const after = std::getenv("STOKER_FAULT_AFTER");
  if (what != nullptr && after != nullptr && may_fault() && ::access(after, F_OK) == 0 && handles_faults() &&
      !g_has_faulted.exchange(true)) {
    fault(what);
  }
  errno = before;
  return original(clock, time);
}
