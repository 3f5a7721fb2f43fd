// SPDX-License-Identifier: Apache-2.0
// Peers whose ranks are threads of this process, for tests of what ranks send each other.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "engine/group/c10d/device_peers.h"

namespace stoker::engine {

/// The messages between ranks, in order, by (from, to).
class Post {
 public:
  void put(int from, int to, std::string bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    sent_bytes[from] += bytes.size();
    letters_[{from, to}].push_back(std::move(bytes));
    changed_.notify_all();
  }
  /// Waits for bytes. Throws core::Error{peer_lost} once there are none and the post is broken.
  std::string take(int from, int to) {
    std::unique_lock<std::mutex> lock(mutex_);
    std::deque<std::string>& letters = letters_[{from, to}];
    changed_.wait(lock, [&] { return !letters.empty() || !broken_.empty(); });
    if (letters.empty()) throw core::Error(core::ErrorKind::peer_lost, broken_);
    std::string bytes = std::move(letters.front());
    letters.pop_front();
    return bytes;
  }
  /// A rank is lost, for this cause.
  void break_off(const std::string& cause) {
    const std::lock_guard<std::mutex> lock(mutex_);
    broken_ = cause;
    changed_.notify_all();
  }
  std::string broken() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return broken_;
  }
  std::map<int, size_t> sent_bytes;  ///< by rank; to be read when all ranks have ended

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<std::string>> letters_;
  std::string broken_;
};

/// One rank of those that share a post.
class PostPeers : public WatchedPeers {
 public:
  PostPeers(Post& post, int rank, int size) : post_(post), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void exchange(int peer, const void* out, size_t out_bytes, void* in, size_t in_bytes) override {
    if (out_bytes > 0) post_.put(rank_, peer, {static_cast<const char*>(out), out_bytes});
    if (in_bytes == 0) return;
    const std::string bytes = post_.take(peer, rank_);
    ASSERT_EQ(bytes.size(), in_bytes);
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(in));
  }
  void throw_if_broken() override {
    if (!post_.broken().empty()) throw core::Error(core::ErrorKind::peer_lost, post_.broken());
  }
  void wait_for(const std::function<bool()>& is_done) override {
    ++waits;
    for (throw_if_broken(); !is_done(); throw_if_broken()) std::this_thread::yield();
  }
  void wait_for_cause() override {
    ++last_words;
    throw_if_broken();
  }
  int waits = 0, last_words = 0;

 private:
  Post& post_;
  const int rank_, size_;
};

/// Work of `count` ranks, each in a thread.
inline void run_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) threads.emplace_back(work, rank);
  for (std::thread& thread : threads) thread.join();
}

/// Numbers whose sum depends on the order.
inline std::vector<at::Tensor> numbers_of(int rank, int64_t count) {
  const at::Generator random = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(7 + rank));
  return {at::randn({count}, random, at::kFloat).mul(at::randn({count}, random, at::kFloat).mul(8).exp()),
          at::full({2, 3}, rank, at::kLong), at::randn({3, 4, 2}, random, at::kDouble).permute({2, 0, 1})};
}

}  // namespace stoker::engine
