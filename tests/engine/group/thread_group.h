// SPDX-License-Identifier: Apache-2.0
// A group whose ranks are threads of this process, for tests of what runs on several ranks.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/group/group.h"

namespace stoker::engine {

/// The state that the ranks share: one exchange at a time.
class ThreadExchange {
 public:
  /// The values of a rank; both are empty where a call needs none.
  struct Share {
    std::string bytes;
    std::vector<at::Tensor> tensors;
  };

  explicit ThreadExchange(int ranks) : brought_(static_cast<size_t>(ranks)) {}

  /// Waits for all ranks, then gives the shares of all of them, by rank. Throws core::Error{peer_lost}.
  std::vector<Share> exchange(int rank, Share share);
  bool abort(int rank, const std::string& why);
  /// A rank ends: an exchange that still waits for it, or comes to wait, throws.
  void leave(int rank);
  int ranks() const { return static_cast<int>(brought_.size()); }

 private:
  void throw_if_broken() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Share> brought_, complete_;
  int arrived_ = 0;
  int64_t rounds_ = 0;
  std::optional<std::string> broken_;  ///< why nothing can be exchanged any more
};

class ThreadGroup : public Group {
 public:
  ThreadGroup(std::shared_ptr<ThreadExchange> exchange, int rank) : exchange_(std::move(exchange)), rank_(rank) {}
  ~ThreadGroup() override { exchange_->leave(rank_); }
  ThreadGroup& operator=(ThreadGroup&&) = delete;  // not copied, not moved

  int rank() const override { return rank_; }
  int size() const override { return exchange_->ranks(); }
  void sum(const std::vector<at::Tensor>& tensors) override;
  std::string from_root(const std::string& bytes) override;
  std::vector<std::string> gather(const std::string& bytes) override;
  bool abort(const std::string& why) noexcept override { return exchange_->abort(rank_, why); }

 private:
  const std::shared_ptr<ThreadExchange> exchange_;
  const int rank_;
};

/// Runs `work` on `ranks` ranks, each on a thread of its own; a rank that throws aborts the group. Returns what each
/// rank threw, by rank; null where it came to its end.
std::vector<std::exception_ptr> run_ranks(int ranks, const std::function<void(Group&)>& work);

}  // namespace stoker::engine
