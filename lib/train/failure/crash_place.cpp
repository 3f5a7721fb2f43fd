// SPDX-License-Identifier: Apache-2.0
#include "train/failure/crash_place.h"

#include <execinfo.h>
#include <ucontext.h>
#include <unistd.h>

#include <climits>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "core/crash/code_map.h"

namespace stoker::train {
namespace {

constexpr const char* kProgram = "train";
constexpr const char* kUnknown = "unknown";
constexpr int kMostFrames = 64;
constexpr size_t kStackWords = 4096;

// Memory that a handler needs, which it may not ask for.
char g_program[PATH_MAX + 1];
core::CodeMap g_code;
void* g_frames[kMostFrames];
uintptr_t g_stack[kStackWords];

struct Registers {
  uintptr_t instruction = 0, stack = 0, link = 0;
};

Registers registers_of(const void* context) {
  Registers found;
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  found.instruction = static_cast<uintptr_t>(machine.gregs[REG_RIP]);
  found.stack = static_cast<uintptr_t>(machine.gregs[REG_RSP]);
#elif defined(__aarch64__)
  found.instruction = machine.pc;
  found.stack = machine.sp;
  found.link = machine.regs[30];
#else
  static_cast<void>(machine);
#endif
  return found;
}

/// Libraries of the language, which do what others ask for.
bool is_runtime(const char* file) {
  for (const char* name :
       {"libc.so", "libc-", "libstdc++", "libc++", "libgcc_s", "libpthread", "libm.so", "ld-", "ld.so"}) {
    if (std::strncmp(file, name, std::strlen(name)) == 0) return true;
  }
  return false;
}

const char* no_runtime(uintptr_t address) {
  const char* const file = g_code.file_of(address);
  return file != nullptr && !is_runtime(file) ? file : nullptr;
}

/// The first frame from `instruction` on that is in no library of the language.
const char* caller_of(uintptr_t instruction) {
  const int count = ::backtrace(g_frames, kMostFrames);
  int at = 0;  // what handles the signal comes first
  while (at < count && reinterpret_cast<uintptr_t>(g_frames[at]) != instruction) ++at;
  for (; at < count; ++at) {
    if (const char* const file = no_runtime(reinterpret_cast<uintptr_t>(g_frames[at]))) return file;
  }
  return nullptr;
}

/// Of code that was generated, or of a call to where no code is: the newest return address on the stack, or what looks
/// like one.
const char* caller_on_stack(const Registers& registers) {
  if (const char* const file = no_runtime(registers.link)) return file;
  const size_t words = core::copy_if_there(registers.stack, g_stack, sizeof g_stack) / sizeof g_stack[0];
  for (size_t i = 0; i < words; ++i) {
    if (const char* const file = no_runtime(g_stack[i])) return file;
  }
  return nullptr;
}

}  // namespace

void prepare_crash_place() {
  const ssize_t length = ::readlink("/proc/self/exe", g_program, PATH_MAX);
  g_program[length < 0 ? 0 : length] = '\0';
  ::backtrace(g_frames, kMostFrames);  // loads the unwinder
}

CrashPlace find_crash_place(int signal_number, const siginfo_t& info, const void* context) {
  CrashPlace place;
  const bool is_fault = info.si_code > 0;
  if (!is_fault && info.si_pid != ::getpid()) {
    place.sender = info.si_pid;
    return place;
  }
  g_code.read(g_program, kProgram);
  const Registers registers = registers_of(context);
  const char* const file = g_code.file_of(registers.instruction);
  const bool was_raised = !is_fault || signal_number == SIGABRT;
  if (file == nullptr) {
    const char* const caller = caller_on_stack(registers);
    place.library = caller != nullptr ? caller : kUnknown;
    return place;
  }
  place.library = file;
  if (!is_runtime(file)) return place;
  const char* caller = caller_of(registers.instruction);
  if (caller == nullptr) caller = caller_on_stack(registers);
  if (was_raised && caller != nullptr) {
    place.library = caller;
  } else {
    place.caller = caller;
  }
  return place;
}

}  // namespace stoker::train
