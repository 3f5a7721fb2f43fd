// SPDX-License-Identifier: Apache-2.0
// The gradients of an update, summed over ranks while the backward pass continues: in buckets, each of which is
// exchanged as soon as all of its tensors are there.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "core/system/mutex.h"
#include "engine/device/stream_order.h"
#include "engine/group/group.h"

namespace stoker::engine {

/// Which tensors lie in one bucket, one after the other.
struct Bucket {
  std::vector<size_t> tensors;
  int64_t bytes = 0;
};

/// Buckets in the order in which they are exchanged: that of the backward pass, which reaches the last parameters
/// first. The last bucket, for which nothing is left to hide behind, has few of the first parameters, and all of the
/// tensors from `parameters` on.
std::vector<Bucket> buckets_of(const std::vector<at::Tensor>& tensors, size_t parameters);

/// One thread gives the parts of this rank, another one, which this has, exchanges them. Between begin() and the return
/// of wait() or abandon() nothing else uses the group.
///
/// On a device with streams the exchanging thread has a stream of its own, or it would wait for the rest of the
/// backward pass. What orders its work with that of the thread that computes:
///  - ready() marks the stream in which the tensor was computed, and the exchange reads it behind that mark.
///  - begin() marks the stream that has read the sums of the update before, and, the first time, made the buckets: they
///    are written to behind that mark.
///  - wait() returns when all sums are complete on the device. So nothing is left that reads the parts, whose memory
///  may
///    go back to the stream that they were allocated in, and whatever is queued next may read the sums.
class RankSum {
 public:
  enum class Order { exact, fast };  ///< Group::sum or Group::sum_in_any_order

  /// `like`: tensors with the shapes, types and strides of those that are summed; the first `parameters` of them are
  /// gradients, in the order of the network. The same on all ranks, each on its device; sums lie there where the group
  /// adds there, else on the CPU. All ranks make one at the same time.
  RankSum(Group& group, const std::vector<at::Tensor>& like, size_t parameters, Order order);
  /// With another order of streams; null: there are none.
  RankSum(Group& group, const std::vector<at::Tensor>& like, size_t parameters, Order order,
          std::unique_ptr<StreamOrder> streams);
  ~RankSum();
  RankSum& operator=(RankSum&&) = delete;  // not copied, not moved

  /// `take(i)` gives this rank's part of tensor i, once; undefined where it has none, which counts as zeros. It is
  /// called by the thread that exchanges, when tensor i is ready.
  void begin(std::function<at::Tensor(size_t)> take);
  /// Any thread; once for each tensor.
  void ready(size_t tensor);
  /// Gradients that are not ready yet count as zeros.
  void fill_with_zeros();
  /// Until all is exchanged. Throws what Group::sum throws.
  void wait();
  /// Returns once no exchange is under way; the update is not finished.
  void abandon() noexcept;

  /// The sum of tensor i after wait(); valid until the next begin().
  const at::Tensor& sum_of(size_t tensor) const { return views_[tensor]; }
  /// How long the sums of this update were under way, after wait().
  std::chrono::nanoseconds under_way() const { return under_way_; }

 private:
  enum class State { idle, begun, abandoned, closed };
  struct Waiting {
    Bucket bucket;
    at::Tensor flat;  ///< [n], its tensors one after the other
  };
  void serve();
  void exchange_all();
  void sum_over_ranks(const at::Tensor& flat);
  size_t begin_mark() const { return views_.size(); }
  bool wait_for(size_t bucket);

  Group& group_;
  const Order order_;
  const std::unique_ptr<StreamOrder> streams_;  ///< a mark for each tensor, and one for begin(); null: a CPU
  std::vector<Waiting> buckets_;
  std::vector<at::Tensor> views_;  ///< views into the flat tensors, by tensor
  std::vector<size_t> bucket_of_;  ///< by tensor
  std::chrono::nanoseconds under_way_{0};
  // Written while the mutex is held. The exchanging thread reads them without it, after wait_for(): nobody then writes
  // what it reads.
  std::function<at::Tensor(size_t)> take_;
  std::vector<char> is_zero_;  ///< by tensor; no bits, since tensors of other buckets may be written meanwhile

  core::Mutex mutex_;
  core::Condition changed_;
  State state_ STOKER_GUARDED_BY(mutex_) = State::idle;
  std::vector<char> is_ready_ STOKER_GUARDED_BY(mutex_);   ///< by tensor
  std::vector<size_t> missing_ STOKER_GUARDED_BY(mutex_);  ///< by bucket: tensors that are not ready
  std::exception_ptr thrown_ STOKER_GUARDED_BY(mutex_);
  std::thread thread_;  ///< declared last: it uses the rest
};

}  // namespace stoker::engine
