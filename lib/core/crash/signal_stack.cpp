// SPDX-License-Identifier: Apache-2.0
#include "core/crash/signal_stack.h"

#include <signal.h>
#include <sys/mman.h>

#include <atomic>

namespace stoker::core {
namespace {

std::atomic<bool> g_enabled{false};
constexpr size_t kBytes = 256 << 10;  // the registers alone are 11 KB with AMX

}  // namespace

SignalStack::SignalStack() {
  if (!g_enabled) return;
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kBytes;
  if (::sigaltstack(&stack, nullptr) == 0) {
    memory_ = memory;
  } else {
    ::munmap(memory, kBytes);
  }
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
  ::munmap(memory_, kBytes);
}

void enable_signal_stacks() {
  g_enabled = true;
  static SignalStack* const of_main_thread = new SignalStack;
  static_cast<void>(of_main_thread);
}

}  // namespace stoker::core
