// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes: Gloo carries the bytes, a store carries what went wrong. A thread per rank watches the
// store, so that the error of one rank reaches those that wait for another.
#include "engine/group/c10d/join.h"

#include <ATen/Functions.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "engine/group/c10d/c10d.h"
#include "engine/group/peers.h"

namespace stoker::engine {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;
using std::chrono::milliseconds;

constexpr milliseconds kWatch(100);        // between two looks at the store
constexpr milliseconds kMeeting(300'000);  // that ranks may come one after the other
constexpr milliseconds kLastWord(1000);    // that a cause may take from its rank to the store
constexpr milliseconds kFarewell(5000);    // that the rank with the store waits for the others to end
constexpr const char* kCause = "cause";    // of the end, once there is one
constexpr const char* kSomeoneElse = "run the same command again: it resumes from the newest checkpoint";

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// What another thread or process may ask at any time; no call waits for others, none throws.
class Notes {
 public:
  explicit Notes(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  void set(const std::string& key, const std::string& value) noexcept {
    try {
      store_->set(key, bytes_of(value));
    } catch (...) {
    }
  }
  /// Leaves the first value; returns what stands there.
  std::string set_once(const std::string& key, const std::string& value) noexcept {
    try {
      const std::vector<uint8_t> now = store_->compareSet(key, {}, bytes_of(value));
      return {now.begin(), now.end()};
    } catch (...) {
      return value;
    }
  }
  /// Empty where there is nothing, or nobody who holds it.
  std::string get(const std::string& key) noexcept {
    try {
      if (!store_->check({key})) return "";
      const std::vector<uint8_t> value = store_->get(key);
      return {value.begin(), value.end()};
    } catch (...) {
      return "";
    }
  }

 private:
  const c10::intrusive_ptr<c10d::Store> store_;
};

std::string ended_key(int rank) { return format("ended/{}", rank); }
std::string here_key(int rank) { return format("here/{}", rank); }

class GlooPeers : public Peers {
 public:
  GlooPeers(const Joining& joining, c10::intrusive_ptr<c10d::Store> store)
      : rank_(joining.rank),
        size_(joining.size),
        timeout_seconds_(joining.timeout_seconds),
        notes_(store),
        tags_(static_cast<size_t>(joining.size)) {
    connect(joining, store);
    watcher_ = std::thread([this] { watch(); });
  }
  ~GlooPeers() override {
    ends_ = true;
    watcher_.join();
  }
  GlooPeers(const GlooPeers&) = delete;
  GlooPeers& operator=(const GlooPeers&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Notes& notes() { return notes_; }

  void exchange(int peer, const void* out, size_t out_bytes, void* in, size_t in_bytes) override {
    const int tag = tags_[static_cast<size_t>(peer)]++ & 0x3FFFFFFF;
    std::vector<at::Tensor> sent = {tensor_over(const_cast<void*>(out), out_bytes)};
    std::vector<at::Tensor> received = {tensor_over(in, in_bytes)};
    try {
      begin([&] {
        if (out_bytes > 0) pending_.push_back(gloo_->send(sent, peer, tag));
        if (in_bytes > 0) pending_.push_back(gloo_->recv(received, peer, tag));
      });
      bool is_complete = true;
      for (const auto& work : pending_) is_complete &= work->wait();
      const std::lock_guard<std::mutex> lock(mutex_);
      pending_.clear();
      if (is_complete) return;
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      lose(peer, error.what());
    }
    lose(peer, "");
  }

  void throw_if_broken() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!broken_.empty()) throw Error(ErrorKind::peer_lost, broken_, kSomeoneElse);
  }

 private:
  static at::Tensor tensor_over(void* bytes, size_t size) {
    return at::from_blob(bytes, {static_cast<int64_t>(size)}, at::kByte);
  }

  void connect(const Joining& joining, const c10::intrusive_ptr<c10d::Store>& store) {
    notes_.set(here_key(rank_), "1");
    auto options =
        c10d::ProcessGroupGloo::Options::create(milliseconds(static_cast<int64_t>(1000 * joining.timeout_seconds)));
    options->devices.push_back(joining.own_address.empty()
                                   ? c10d::ProcessGroupGloo::createDefaultDevice()
                                   : c10d::ProcessGroupGloo::createDeviceForHostname(joining.own_address));
    options->threads = 2;
    try {
      for (int rank = 0; rank < size_; ++rank) store->wait({here_key(rank)}, kMeeting);
      gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank_, size_, options);
    } catch (const std::exception&) {
      std::string missing;
      for (int rank = 0; rank < size_; ++rank) {
        if (notes_.get(here_key(rank)).empty()) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      }
      throw Error(ErrorKind::peer_lost,
                  missing.empty() ? "the ranks came, but could not be connected"
                                  : format("rank {} did not come within {} s", missing, kMeeting.count() / 1000),
                  kSomeoneElse);
    }
  }

  /// Starts work that a broken run ends at once.
  template <typename Start>
  void begin(const Start& start) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!broken_.empty()) throw Error(ErrorKind::peer_lost, broken_, kSomeoneElse);
    pending_.clear();
    start();
  }

  /// Of the watching thread: notices what another rank said, and ends the wait of this one.
  void watch() {
    for (; !ends_; std::this_thread::sleep_for(kWatch)) {
      const std::string cause = notes_.get(kCause);
      if (cause.empty()) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      broken_ = cause;
      for (const auto& work : pending_) work->abort();
      return;
    }
  }

  /// The connection to `peer` broke, or it did not answer. The reason is what the first rank said, and that may be on
  /// its way.
  [[noreturn]] void lose(int peer, const std::string& what) {
    {
      // Before the memory that they point to goes.
      const std::lock_guard<std::mutex> lock(mutex_);
      pending_.clear();
    }
    throw_if_broken();
    const bool timed_out = what.find("imed out") != std::string::npos;
    std::string cause = notes_.get(kCause);
    for (milliseconds waited(0); cause.empty() && !timed_out && waited < kLastWord; waited += kWatch) {
      if (!notes_.get(ended_key(peer)).empty()) break;
      std::this_thread::sleep_for(kWatch);
      cause = notes_.get(kCause);
    }
    if (cause.empty()) {
      const bool has_ended = !notes_.get(ended_key(peer)).empty();
      cause = notes_.set_once(kCause, timed_out ? format("rank {} has not answered for {:g} s", peer, timeout_seconds_)
                                      : has_ended ? format("rank {} has ended", peer)
                                                  : format("rank {} is gone", peer));
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (broken_.empty()) broken_ = cause;
    }
    throw_if_broken();
    throw Error(ErrorKind::bug, "a lost rank without a cause");
  }

  const int rank_, size_;
  const double timeout_seconds_;
  Notes notes_;
  std::vector<int> tags_;  ///< by rank: exchanges with it so far
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  std::mutex mutex_;
  std::string broken_;                                   ///< why nothing can be exchanged any more
  std::vector<c10::intrusive_ptr<c10d::Work>> pending_;  ///< that the training thread waits for
  std::atomic<bool> ends_{false};
  std::thread watcher_;
};

class C10dGroup : public Group {
 public:
  C10dGroup(const Joining& joining, const c10::intrusive_ptr<c10d::Store>& store)
      : hosts_(joining.hosts_meeting_point), peers_(joining, store) {}
  ~C10dGroup() override {
    peers_.notes().set(ended_key(rank()), "1");
    if (hosts_) wait_for_others_to_end();
  }
  C10dGroup(const C10dGroup&) = delete;
  C10dGroup& operator=(const C10dGroup&) = delete;

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }
  void sum(const std::vector<at::Tensor>& tensors) override { sum_over_peers(checked(), tensors); }
  std::string from_root(const std::string& bytes) override { return from_root_of_peers(checked(), bytes); }
  std::vector<std::string> gather(const std::string& bytes) override { return gather_from_peers(checked(), bytes); }
  bool abort(const std::string& why) noexcept override {
    try {
      const std::string cause = format("rank {} failed: {}", rank(), why);
      return peers_.notes().set_once(kCause, cause) == cause;
    } catch (...) {
      return true;
    }
  }

 private:
  Peers& checked() {
    peers_.throw_if_broken();
    return peers_;
  }
  /// They read the store until then.
  void wait_for_others_to_end() {
    for (milliseconds waited(0); waited < kFarewell; waited += kWatch) {
      int ended = 0;
      for (int rank = 0; rank < size(); ++rank) ended += peers_.notes().get(ended_key(rank)).empty() ? 0 : 1;
      if (ended == size()) return;
      std::this_thread::sleep_for(kWatch);
    }
  }

  const bool hosts_;
  GlooPeers peers_;
};

class StoreMeetingPoint : public MeetingPoint {
 public:
  StoreMeetingPoint() : store_(compat::make_store("127.0.0.1", 0, /*is_server=*/true, kMeeting)) {}
  int port() const override { return store_->getPort(); }
  std::string cause() const override { return notes().get(kCause); }
  void say(const std::string& cause) override { notes().set_once(kCause, cause); }

 private:
  Notes notes() const { return Notes(c10::make_intrusive<c10d::PrefixStore>("stoker/", store_)); }

  const c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

bool can_join_processes() { return true; }

std::unique_ptr<MeetingPoint> open_meeting_point() {
  try {
    return std::make_unique<StoreMeetingPoint>();
  } catch (const std::exception& error) {
    throw Error(ErrorKind::os, format("ranks have no place to meet: {}", error.what()));
  }
}

std::unique_ptr<Group> join_processes(const Joining& joining) {
  c10::intrusive_ptr<c10d::Store> store;
  try {
    store = compat::make_store(joining.host, joining.port, joining.hosts_meeting_point, kMeeting);
  } catch (const std::exception& error) {
    throw Error(ErrorKind::peer_lost,
                format("rank {} cannot reach the meeting point {}:{}", joining.rank, joining.host, joining.port),
                "look at the address and the port, and whether rank 0 is running");
  }
  store = c10::make_intrusive<c10d::PrefixStore>("stoker/" + joining.attempt, store);
  return std::make_unique<C10dGroup>(joining, store);
}

}  // namespace stoker::engine
