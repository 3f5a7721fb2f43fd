// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/group/thread_group.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <thread>

#include "core/error.h"
#include "core/format.h"

namespace stoker::engine {

void ThreadExchange::throw_if_broken() const {
  if (broken_) throw core::Error(core::ErrorKind::peer_lost, *broken_);
}

std::vector<ThreadExchange::Share> ThreadExchange::exchange(int rank, Share share) {
  std::unique_lock<std::mutex> lock(mutex_);
  throw_if_broken();
  brought_[static_cast<size_t>(rank)] = std::move(share);
  const int64_t round = rounds_;
  if (++arrived_ == ranks()) {
    arrived_ = 0;
    ++rounds_;
    complete_ = brought_;
    changed_.notify_all();
    return complete_;
  }
  // `complete_` stays until the next round is complete, for which this rank is needed.
  changed_.wait(lock, [&] { return rounds_ != round || broken_; });
  if (rounds_ == round) throw_if_broken();
  return complete_;
}

bool ThreadExchange::abort(int rank, const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_first = !broken_;
  if (is_first) broken_ = core::format("rank {} failed: {}", rank, why);
  changed_.notify_all();
  return is_first;
}

void ThreadExchange::leave(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!broken_) broken_ = core::format("rank {} has ended", rank);
  changed_.notify_all();
}

void ThreadGroup::sum(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  ThreadExchange::Share own;
  for (const at::Tensor& tensor : tensors) own.tensors.push_back(tensor.detach().clone());
  const std::vector<ThreadExchange::Share> all = exchange_->exchange(rank_, std::move(own));
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<at::Tensor> parts;  // shared by all ranks: read only
    for (const ThreadExchange::Share& share : all) parts.push_back(share.tensors.at(i));
    size_t width = 1;
    while (width < parts.size()) width *= 2;
    for (size_t half = width / 2; half > 0; half /= 2) {
      for (size_t s = 0; s < half && s + half < parts.size(); ++s) parts[s] = parts[s].add(parts[s + half]);
      if (parts.size() > half) parts.resize(half);
    }
    tensors[i].copy_(parts[0]);
  }
}

std::string ThreadGroup::from_root(const std::string& bytes) {
  return exchange_->exchange(rank_, {rank_ == 0 ? bytes : "", {}}).front().bytes;
}

std::vector<std::string> ThreadGroup::gather(const std::string& bytes) {
  std::vector<std::string> all;
  for (ThreadExchange::Share& share : exchange_->exchange(rank_, {bytes, {}})) all.push_back(std::move(share.bytes));
  return all;
}

std::vector<std::exception_ptr> run_ranks(int ranks, const std::function<void(Group&)>& work) {
  const auto exchange = std::make_shared<ThreadExchange>(ranks);
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadGroup group(exchange, rank);
      try {
        work(group);
      } catch (const std::exception& error) {
        group.abort(error.what());
        thrown[static_cast<size_t>(rank)] = std::current_exception();
      } catch (...) {
        group.abort("stopped");
        thrown[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

}  // namespace stoker::engine
