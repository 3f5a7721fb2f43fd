// SPDX-License-Identifier: Apache-2.0
#include "train/failure/crash_handler.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include "core/crash/code_map.h"
#include "core/crash/crash_file.h"
#include "core/crash/signal_stack.h"
#include "core/crash/signal_text.h"
#include "core/open_retrying.h"
#include "train/failure/end_command.h"

namespace stoker::train {
namespace {

// Where a fault happened: which file holds the instruction, by system calls and unwinding alone.

struct CrashPlace {
  const char* library = "none";  ///< file of the instruction; "none": the signal was sent from outside
  const char* caller = nullptr;  ///< where that is a library of the language: who called it, if that is known
  pid_t sender = 0;              ///< process that sent a signal from outside
};

constexpr const char* kProgram = "train";
constexpr const char* kUnknown = "unknown";
constexpr int kMostFrames = 64;
constexpr size_t kStackWords = 4096;

// Memory that a handler needs, which it may not allocate.
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

/// Libraries of the language, which act for their callers.
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

/// For generated code, or a call to an address without code: the newest return address on the stack, or what looks
/// like one.
const char* caller_on_stack(const Registers& registers) {
  if (const char* const file = no_runtime(registers.link)) return file;
  const size_t words = core::copy_if_there(registers.stack, g_stack, sizeof g_stack) / sizeof g_stack[0];
  for (size_t i = 0; i < words; ++i) {
    if (const char* const file = no_runtime(g_stack[i])) return file;
  }
  return nullptr;
}

/// Loads what find_crash_place() needs, and notes who this program is.
void prepare_crash_place() {
  const ssize_t length = ::readlink("/proc/self/exe", g_program, PATH_MAX);
  g_program[length < 0 ? 0 : length] = '\0';
  ::backtrace(g_frames, kMostFrames);  // loads the unwinder
}

/// In a signal handler with SA_SIGINFO, once.
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

using core::FaultSignal;
using Line = core::SignalText<2048>;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#elif defined(__has_feature)
constexpr bool kHasSanitizer = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kHasSanitizer = false;
#endif

constexpr unsigned kMostSeconds = 20;  // for all that is done here but the user's command

std::atomic<pid_t> g_reporter{0};  ///< the thread that crashed first
std::atomic<int> g_signal{0};      ///< its signal
std::atomic<bool> g_has_last_line{false};
std::atomic<int> g_rank{0};
pid_t g_process = 0;
bool g_has_live_line = false;
CrashPlace g_place;
static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "signal handlers may only touch lock-free atomics");

const FaultSignal& fault_of(int signal_number) {
  return *core::fault_of_exit_code(core::fault_exit_code(signal_number));
}

/// Also where something failed on the way here.
[[noreturn]] void leave(int signal_number) {
  const int exit_code = core::fault_exit_code(signal_number);
  if (!g_has_last_line.exchange(true)) {
    Line line;
    line.add("train: exit=")
        .add(static_cast<uint64_t>(exit_code))
        .add(" reason=crash:")
        .add(fault_of(signal_number).name);
    line.add(" library=").add_printable(g_place.library).add('\n').write_to(STDERR_FILENO);
  }
  ::_exit(exit_code);
}

void on_alarm(int) { leave(g_signal); }

/// These actions may wait for ever, for a lock or a disk.
void limit_time() {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  ::sigaction(SIGALRM, &action, nullptr);
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  ::alarm(kMostSeconds);
}

bool is_program() { return std::strcmp(g_place.library, "train") == 0; }

/// An error and a hint, as core::Error::text() has them.
void describe(Line& text, int signal_number, bool trains) {
  const FaultSignal& fault = fault_of(signal_number);
  if (g_rank > 0) text.add("rank ").add(static_cast<uint64_t>(g_rank)).add(": ");
  if (g_place.sender > 0) {
    text.add("SIG").add(fault.name).add(" was sent by process ").add(static_cast<uint64_t>(g_place.sender));
  } else {
    text.add("crashed with SIG").add(fault.name).add(" (").add(fault.cause).add(") in ").add_printable(g_place.library);
    if (g_place.caller != nullptr) text.add(", called by ").add_printable(g_place.caller);
  }
  text.add("\nhint: ");
  text.add(trains ? "checkpoints are complete: run the same command to continue" : "run the same command again");
  if (g_rank > 0) text.add(": a training run continues from the newest checkpoint");
  if (g_place.sender == 0 && is_program()) {
    text.add(", and please report this with the lines above");
  } else if (g_place.sender == 0) {
    text.add(". The operation is unknown; --prove-backend full checks each of them on this machine. ");
    text.add("Another version of ").add_printable(g_place.caller ? g_place.caller : g_place.library);
    text.add(" may not crash");
  }
}

/// For "runs/photos/status.json".
template <size_t Capacity>
void add_folder_of(core::SignalText<Capacity>& text, const char* path) {
  const char* const name = std::strrchr(path, '/');
  for (const char* at = path; name != nullptr && at < name; ++at) text.add(*at);
}

/// To the run's log, as core::open_log_file() has lines.
void append_to_log(const core::CrashFile& file, const char* text) {
  core::SignalText<PATH_MAX> path;
  add_folder_of(path, file.path.c_str());
  const int fd = core::open_retrying(path.add("/train.log").text(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  Line line;
  line.add_utc(static_cast<uint64_t>(now.tv_sec), static_cast<uint64_t>(now.tv_nsec) / 1'000'000);
  line.add(" error ").add(text).add('\n').write_to(fd);
  ::close(fd);
}

/// Completes the text of core::prepare_crash_file(), to the end of its JSON object.
void replace_file(const core::CrashFile& file, int signal_number) {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  Line end;
  end.add(",\n \"time\": \"")
      .add_utc(static_cast<uint64_t>(now.tv_sec))
      .add("\",\n \"reason\": \"crash:")
      .add(fault_of(signal_number).name)
      .add("\",\n \"library\": \"");
  for (const char* at = g_place.library; *at != '\0'; ++at) {
    const bool is_plain = *at >= ' ' && *at < 0x7f && *at != '"' && *at != '\\';
    end.add(is_plain ? *at : '?');
  }
  end.add("\",\n \"exit_code\": ").add(static_cast<uint64_t>(core::fault_exit_code(signal_number))).add("\n}\n");
  const int fd = core::open_retrying(file.temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
  if (fd < 0) return;
  const bool is_whole = core::write_all(fd, file.begin.data(), file.begin.size()) && end.write_to(fd);
  if (::close(fd) == 0 && is_whole) {
    ::rename(file.temporary.c_str(), file.path.c_str());
  } else {
    ::unlink(file.temporary.c_str());
  }
}

void run_command(const core::CrashFile* file, int signal_number) {
  core::SignalText<16> code, reason;
  code.add(static_cast<uint64_t>(core::fault_exit_code(signal_number)));
  reason.add("crash:").add(fault_of(signal_number).name);
  core::SignalText<PATH_MAX> run_dir;
  if (file != nullptr) add_folder_of(run_dir, file->path.c_str());
  ::alarm(0);  // it takes as long as it likes
  run_crash_command(code.text(), reason.text(), run_dir.text());
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
  if (::getpid() != g_process) {  // a child that has not become another program yet
    ::signal(signal_number, SIG_DFL);
    ::raise(signal_number);
    return;
  }
  const auto thread = static_cast<pid_t>(::syscall(SYS_gettid));
  pid_t nobody = 0;
  if (!g_reporter.compare_exchange_strong(nobody, thread)) {
    if (nobody == thread) leave(g_signal);  // a fault in what follows
    for (;;) ::pause();
  }
  g_signal = signal_number;
  g_place.library = "unknown";
  limit_time();
  g_place = find_crash_place(signal_number, *info, context);
  const core::CrashFile* const file = core::take_crash_file();
  if (g_has_live_line) core::write_all(STDOUT_FILENO, "\n", 1);
  Line description;
  describe(description, signal_number, /*trains=*/file != nullptr);
  Line().add("error: ").add(description.text()).add('\n').write_to(STDERR_FILENO);
  if (file != nullptr) {
    append_to_log(*file, description.text());
    replace_file(*file, signal_number);
  }
  run_command(file, signal_number);
  leave(signal_number);
}

/// UCX, which Open MPI may bring along, prints pages of its own. Only a loaded UCX can be configured; the variable is
/// for what loads later, and for other processes of this run. Returns whether the user requested its handlers.
bool keep_ucx_out() {
  constexpr const char* kVariable = "UCX_HANDLE_ERRORS";
  constexpr const char* kNone = "none";
  const char* const requested = std::getenv(kVariable);
  if (requested != nullptr && std::strcmp(requested, kNone) != 0) return true;
  ::setenv(kVariable, kNone, /*overwrite=*/0);
  if (void* const found = ::dlsym(RTLD_DEFAULT, "ucs_debug_disable_signals")) reinterpret_cast<void (*)()>(found)();
  return false;
}

}  // namespace

void install_crash_handler() {
  if (kHasSanitizer) return;
  const bool keeps_others = keep_ucx_out();
  g_process = ::getpid();
  g_has_live_line = ::isatty(STDOUT_FILENO) != 0;
  prepare_crash_place();
  core::enable_signal_stacks();
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  // SA_NODEFER: a fault in the handler comes back to it, where a held signal would end the process without a word.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigset_t faults;
  sigemptyset(&faults);
  for (const FaultSignal& fault : core::kFaultSignals) {
    struct sigaction before {};
    sigaddset(&faults, fault.number);
    if (keeps_others && ::sigaction(fault.number, nullptr, &before) == 0 && before.sa_handler != SIG_DFL) continue;
    ::sigaction(fault.number, &action, nullptr);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

void set_rank_of_crashes(int rank) { g_rank = rank; }

}  // namespace stoker::train
