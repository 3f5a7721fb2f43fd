// SPDX-License-Identifier: Apache-2.0
#include "engine/step/rank_sum.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "core/crash/signal_stack.h"

namespace stoker::engine {
namespace {

constexpr int64_t kFewestBytes = 256 * 1024, kMaxBytes = 4 * 1024 * 1024;
constexpr int64_t kAlignment = 64;  // bytes: kernels see a sum as they see a tensor of its own

/// With the padding up to where the next one begins.
int64_t numbers_of(const at::Tensor& tensor) {
  const auto step = kAlignment / static_cast<int64_t>(tensor.element_size());
  return (tensor.numel() + step - 1) / step * step;
}

at::Device device_of(const std::vector<at::Tensor>& tensors) {
  return tensors.empty() ? at::Device(at::kCPU) : tensors.front().device();
}

}  // namespace

std::vector<Bucket> buckets_of(const std::vector<at::Tensor>& tensors, size_t parameters) {
  std::vector<Bucket> buckets;
  int64_t most = kFewestBytes;
  const auto add = [&](size_t i) {
    const int64_t bytes = numbers_of(tensors[i]) * static_cast<int64_t>(tensors[i].element_size());
    const bool fits = !buckets.empty() && buckets.back().bytes + bytes <= most &&
                      tensors[buckets.back().tensors.front()].scalar_type() == tensors[i].scalar_type();
    if (!fits) {
      if (!buckets.empty()) most = std::min(4 * most, kMaxBytes);
      buckets.emplace_back();
    }
    buckets.back().tensors.push_back(i);
    buckets.back().bytes += bytes;
  };
  for (size_t i = parameters; i < tensors.size(); ++i) add(i);
  for (size_t i = 0; i < parameters; ++i) add(i);
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

RankSum::RankSum(Group& group, const std::vector<at::Tensor>& like, size_t parameters, Order order)
    : RankSum(group, like, parameters, order, stream_order(device_of(like), like.size() + 1)) {}

RankSum::RankSum(Group& group, const std::vector<at::Tensor>& like, size_t parameters, Order order,
                 std::unique_ptr<StreamOrder> streams)
    : group_(group), order_(order), streams_(std::move(streams)), views_(like.size()), bucket_of_(like.size()) {
  const at::NoGradGuard no_gradients;
  const at::Device own = device_of(like), device = group.sums_on(own) ? own : at::Device(at::kCPU);
  for (Bucket& bucket : buckets_of(like, parameters)) {
    Waiting waiting;
    int64_t numbers = 0;
    for (const size_t i : bucket.tensors) numbers += numbers_of(like[i]);
    waiting.flat = at::zeros({numbers}, like[bucket.tensors.front()].options().device(device));
    int64_t begin = 0;
    for (const size_t i : bucket.tensors) {
      const at::Tensor& tensor = like[i];
      views_[i] = tensor.is_non_overlapping_and_dense()
                      ? waiting.flat.as_strided(tensor.sizes(), tensor.strides(), begin)
                      : waiting.flat.narrow(0, begin, tensor.numel()).view(tensor.sizes());
      bucket_of_[i] = buckets_.size();
      begin += numbers_of(tensor);
    }
    waiting.bucket = std::move(bucket);
    buckets_.push_back(std::move(waiting));
  }
  thread_ = std::thread([this] { serve(); });
}

RankSum::~RankSum() {
  abandon();
  {
    const core::MutexLock lock(mutex_);
    state_ = State::closed;
  }
  changed_.notify_all();
  thread_.join();
}

void RankSum::begin(std::function<at::Tensor(size_t)> take) {
  if (streams_) streams_->set(begin_mark());
  {
    const core::MutexLock lock(mutex_);
    take_ = std::move(take);
    is_ready_.assign(views_.size(), false);
    is_zero_.assign(views_.size(), false);
    missing_.clear();
    for (const Waiting& waiting : buckets_) missing_.push_back(waiting.bucket.tensors.size());
    thrown_ = nullptr;
    state_ = State::begun;
  }
  changed_.notify_all();
}

void RankSum::ready(size_t tensor) {
  const core::MutexLock lock(mutex_);
  if (is_ready_[tensor]) return;
  if (streams_) streams_->set(tensor);
  is_ready_[tensor] = true;
  if (--missing_[bucket_of_[tensor]] == 0) changed_.notify_all();
}

void RankSum::fill_with_zeros() {
  const core::MutexLock lock(mutex_);
  for (size_t i = 0; i < views_.size(); ++i) {
    if (!is_ready_[i]) is_ready_[i] = is_zero_[i] = true;
  }
  missing_.assign(buckets_.size(), 0);
  changed_.notify_all();
}

void RankSum::wait() {
  const core::MutexLock lock(mutex_);
  while (state_ != State::idle) changed_.wait(mutex_);
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void RankSum::abandon() noexcept {
  const core::MutexLock lock(mutex_);
  if (state_ == State::idle) return;
  state_ = State::abandoned;
  changed_.notify_all();
  while (state_ != State::idle) changed_.wait(mutex_);
}

void RankSum::serve() {
  const core::SignalStack stack;
  at::set_num_threads(1);
  const at::NoGradGuard no_gradients;
  for (;;) {
    {
      const core::MutexLock lock(mutex_);
      while (state_ == State::idle) changed_.wait(mutex_);
      if (state_ == State::closed) return;
    }
    std::exception_ptr thrown;
    try {
      if (streams_)
        streams_->on_own_stream([this] { exchange_all(); });
      else
        exchange_all();
    } catch (...) {
      thrown = std::current_exception();
    }
    {
      const core::MutexLock lock(mutex_);
      thrown_ = thrown;
      take_ = nullptr;
      state_ = State::idle;
    }
    changed_.notify_all();
  }
}

void RankSum::exchange_all() {
  under_way_ = {};
  if (streams_) streams_->wait(begin_mark());
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (!wait_for(bucket)) return;
    const Waiting& waiting = buckets_[bucket];
    for (const size_t i : waiting.bucket.tensors) {
      if (streams_ && !is_zero_[i]) streams_->wait(i);
      const at::Tensor part = is_zero_[i] ? at::Tensor() : take_(i);
      if (part.defined())
        views_[i].copy_(part);
      else
        views_[i].zero_();
    }
    // From here on this rank waits for others; before, for its own gradients, which others may wait for.
    if (streams_) streams_->finish();
    const auto begin = std::chrono::steady_clock::now();
    sum_over_ranks(waiting.flat);
    under_way_ += std::chrono::steady_clock::now() - begin;
  }
}

void RankSum::sum_over_ranks(const at::Tensor& flat) {
  switch (order_) {
    case Order::exact: return group_.sum({flat});
    case Order::fast: return group_.sum_in_any_order(flat);
  }
}

/// Until all of it is there; false: the update is abandoned.
bool RankSum::wait_for(size_t bucket) {
  const core::MutexLock lock(mutex_);
  while (missing_[bucket] != 0 && state_ == State::begun) changed_.wait(mutex_);
  return state_ == State::begun;
}

}  // namespace stoker::engine
