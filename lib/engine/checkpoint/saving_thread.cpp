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

#include "core/crash/signal_stack.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "engine/device/stream_order.h"

namespace stoker::engine {
namespace {

/// Training has priority where CPUs are short.
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

namespace {

constexpr int64_t kCacheLine = 64;  // bytes: a cache line

int64_t padded_bytes(const torch::Tensor& tensor) {
  return (static_cast<int64_t>(tensor.nbytes()) + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace

std::vector<std::vector<NamedTensor>> Staging::copy(const std::vector<std::vector<NamedTensor>>& groups) {
  const torch::NoGradGuard no_grad;
  int64_t bytes = 0;
  for (const auto& group : groups) {
    for (const NamedTensor& entry : group) bytes += padded_bytes(entry.tensor);
  }
  if (this->bytes() < bytes) {
    block_.reset();  // before the next one is there: both may not fit
    memory_.reset();
    try {
      const auto options = torch::TensorOptions().dtype(torch::kUInt8);
      if (device_.is_cpu()) memory_.reset(new char[static_cast<size_t>(bytes)]);
      block_ = device_.is_cpu() ? torch::from_blob(memory_.get(), {bytes}, options)
                                : torch::empty({bytes}, options.pinned_memory(device_.is_cuda()));
    } catch (const std::exception&) {
      throw core::Error(core::ErrorKind::out_of_memory,
                        core::format("cannot allocate {} for the copy that a checkpoint is written from",
                                     core::bytes_text(static_cast<double>(bytes))),
                        "--no-async-save writes checkpoints without a copy");
    }
  }
  int64_t offset = 0;
  std::vector<std::vector<NamedTensor>> copies;
  for (const auto& group : groups) {
    copies.emplace_back();
    for (const NamedTensor& entry : group) {
      const torch::Tensor source = entry.tensor.detach();
      torch::Tensor place = block_.narrow(0, offset, static_cast<int64_t>(source.nbytes())).view(source.scalar_type());
      // As it lies in memory: reordering is work for whoever writes.
      place = source.is_non_overlapping_and_dense()
                  ? place.as_strided(source.sizes(), source.strides(), place.storage_offset())
                  : place.view(source.sizes());
      place.copy_(source, /*non_blocking=*/true);
      copies.back().push_back({entry.name, place});
      offset += padded_bytes(source);
    }
  }
  finish_stream(device_);
  return copies;
}

}  // namespace stoker::engine
