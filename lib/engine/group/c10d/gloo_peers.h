// SPDX-License-Identifier: Apache-2.0
// Bytes between ranks that are processes, through Gloo. A thread watches the rendezvous meanwhile: it sends heartbeats
// of this rank, reads what went wrong elsewhere, and finds the rank that no longer answers.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/group/c10d/c10d.h"
#include "engine/group/peers.h"
#include "engine/group/rendezvous.h"

namespace stoker::engine {

class GlooPeers : public WatchedPeers {
 public:
  struct Settings {
    int rank = 0, size = 1;
    std::string address;                                   ///< where this rank listens for the others
    double meeting_seconds = 300, timeout_seconds = 60;    ///< see Joining
    std::function<void(const std::string&)> when_overdue;  ///< see Joining
  };
  /// Waits for all ranks. Makes a `store` for the addresses of Gloo once all are there. Throws core::Error{peer_lost},
  /// core::StopRequested.
  GlooPeers(Settings settings, Rendezvous& rendezvous, const std::function<c10::intrusive_ptr<c10d::Store>()>& store);
  ~GlooPeers() override;
  GlooPeers& operator=(GlooPeers&&) = delete;  // not copied, not moved

  int rank() const override { return settings_.rank; }
  int size() const override { return settings_.size; }
  void exchange(int peer, const void* out, size_t out_bytes, void* in, size_t in_bytes) override;
  /// Replaces a contiguous tensor by its sum over all ranks, in Gloo's order. Throws core::Error{peer_lost}.
  void all_reduce(const at::Tensor& tensor);
  int64_t bytes_sent() const { return bytes_sent_; }
  void throw_if_broken() override;
  void wait_for(const std::function<bool()>& is_done) override;
  void wait_for_cause() override;
  /// The state of this rank until the next call.
  void set_long_work(bool is_long) { is_long_work_ = is_long; }
  /// Publishes to all ranks why they cannot continue, unless a rank has; returns the cause that stands.
  std::string publish_cause(const std::string& cause) noexcept;

 private:
  static constexpr std::chrono::milliseconds kWatch{100};  ///< between two looks at the rendezvous

  static bool is_done(c10d::Work& work);
  void wait_for_ranks();
  void connect(const std::function<c10::intrusive_ptr<c10d::Store>()>& store);
  void end_watch();
  void watch();
  void send_heartbeat(Heartbeat::Doing doing) noexcept;
  std::string find_lost_rank(double now);
  void break_off(const std::string& cause);
  [[noreturn]] void lose(int peer, const std::string& what);
  std::string cause() noexcept;
  Heartbeat heartbeat_of(int rank) noexcept;

  const Settings settings_;
  Rendezvous& rendezvous_;
  std::vector<int> tags_;  ///< by rank: exchanges with it so far
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  std::mutex mutex_;
  std::string broken_;                                   ///< why nothing can be exchanged any more
  std::vector<c10::intrusive_ptr<c10d::Work>> pending_;  ///< that the training thread waits for
  std::atomic<bool> is_long_work_{true}, waits_{false}, ends_{false};
  std::atomic<int64_t> exchanges_{0}, bytes_sent_{0};
  // State of the watching thread.
  LostRankFinder finder_;
  int64_t heartbeats_ = 1;  ///< given so far; the first by who came to the rendezvous
  double next_heartbeat_ = 0;
  int64_t seen_exchange_ = -1;  ///< number of the exchange whose wait is looked at
  std::thread watcher_;
};

}  // namespace stoker::engine
