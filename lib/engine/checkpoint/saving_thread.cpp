// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/saving_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "core/crash/fault_signals.h"
#include "core/crash/signal_stack.h"
#include "core/error.h"
#include "core/log.h"

namespace stoker::engine {
namespace {

/// What trains goes first where CPUs are short.
void give_way() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 5); }

}  // namespace

SavingThread::~SavingThread() {
  try {
    wait();
    take();
  } catch (const std::exception& error) {
    core::log_error("the checkpoint that was being written is lost: {}", error.what());
  }
}

std::shared_ptr<SavingThread::Task> SavingThread::task_of(std::function<CheckpointEvent()> save) {
  if (is_begun()) throw core::Error(core::ErrorKind::bug, "a save begins while the end of another was not taken");
  auto task = std::make_shared<Task>(std::move(save));
  ended_ = task->get_future();
  return task;
}

void SavingThread::run_here(std::function<CheckpointEvent()> save) { (*task_of(std::move(save)))(); }

void SavingThread::begin(std::function<CheckpointEvent()> save) {
  const std::shared_ptr<Task> task = task_of(std::move(save));
  const sigset_t held = core::all_but_faults();
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, &held, &before);  // signals are for the main thread; new threads inherit the mask
  try {
    thread_ = std::thread([task] {
      const core::SignalStack stack;
      give_way();
      (*task)();
    });
  } catch (const std::system_error&) {  // no more threads: here and now
    (*task)();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void SavingThread::wait() {
  if (thread_.joinable()) thread_.join();
}

std::optional<CheckpointEvent> SavingThread::take() {
  if (!ended_.valid() || ended_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  wait();
  return ended_.get();
}

}  // namespace stoker::engine
