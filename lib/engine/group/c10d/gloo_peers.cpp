// SPDX-License-Identifier: Apache-2.0
#include "engine/group/c10d/gloo_peers.h"

#include <ATen/Functions.h>
#include <unistd.h>

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "engine/group/group.h"

namespace stoker::engine {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLastWord(1000);                         // that a cause may take to get here
constexpr std::chrono::microseconds kPoll(50), kBusyPoll(500);  // between two looks, after some time without a pause
constexpr double kOverdue = 3;  // seconds that a rank has to end by itself once another is lost
constexpr milliseconds kForever(std::chrono::hours(24 * 365));
constexpr const char* kAgain = "run the same command again: it resumes from the newest checkpoint";

at::Tensor tensor_over(void* bytes, size_t size) {
  return at::from_blob(bytes, {static_cast<int64_t>(size)}, at::kByte);
}

}  // namespace

GlooPeers::GlooPeers(Settings settings, Rendezvous& rendezvous,
                     const std::function<c10::intrusive_ptr<c10d::Store>()>& store)
    : settings_(std::move(settings)),
      rendezvous_(rendezvous),
      tags_(static_cast<size_t>(settings_.size)),
      finder_(settings_.rank, settings_.size, settings_.timeout_seconds) {
  watcher_ = std::thread([this] { watch(); });
  try {
    wait_for_ranks();
    connect(store);
  } catch (const std::exception& error) {
    publish_cause(error.what());
    end_watch();
    throw;
  } catch (...) {  // a stop; ranks that connect meanwhile do not look for one
    publish_cause(format("rank {} failed: {}{}", rank(), kStoppedBySignal, core::stop_signal_name()));
    end_watch();
    throw;
  }
}

GlooPeers::~GlooPeers() { end_watch(); }

void GlooPeers::end_watch() {
  ends_ = true;
  watcher_.join();
  send_heartbeat(Heartbeat::Doing::ended);
}

void GlooPeers::wait_for_ranks() {
  bool is_first = false;  // of those that are here: it logs who is missing
  const auto missing = [&] {
    throw_if_broken();
    std::string ranks;
    is_first = true;
    for (int other = 0; other < size(); ++other) {
      const bool is_present = other == rank() || rendezvous_.heartbeat_of(other).is_present();
      is_first &= !is_present || other >= rank();
      if (!is_present) ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(other);
    }
    return ranks.empty() ? ranks : format("{} of {}", ranks, size());
  };
  wait_until_present(missing, settings_.meeting_seconds, kAgain, is_first);
}

void GlooPeers::connect(const std::function<c10::intrusive_ptr<c10d::Store>()>& store) {
  auto options =
      c10d::ProcessGroupGloo::Options::create(milliseconds(static_cast<int64_t>(1000 * settings_.timeout_seconds)));
  options->threads = 2;
  waits_ = true;  // a rank that sends no heartbeat meanwhile is lost
  try {
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(settings_.address));
    gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store(), rank(), size(), options);
    waits_ = false;
  } catch (const std::exception& error) {
    throw_if_broken();
    std::string what = error.what();
    throw Error(ErrorKind::peer_lost,
                format("rank {} could not be connected with the others from its address {}: {}", rank(),
                       settings_.address, what.substr(0, what.find('\n'))),
                "ranks connect to each other at any port: look at the firewalls between their machines");
  }
}

void GlooPeers::exchange(int peer, const void* out, size_t out_bytes, void* in, size_t in_bytes) {
  const int tag = tags_[static_cast<size_t>(peer)]++ & 0x3FFFFFFF;
  std::vector<at::Tensor> sent = {tensor_over(const_cast<void*>(out), out_bytes)};
  std::vector<at::Tensor> received = {tensor_over(in, in_bytes)};
  try {
    {  // work that a broken run ends at once
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!broken_.empty()) throw Error(ErrorKind::peer_lost, broken_, kAgain);
      pending_.clear();
      if (out_bytes > 0) pending_.push_back(gloo_->send(sent, peer, tag));
      if (in_bytes > 0) pending_.push_back(gloo_->recv(received, peer, tag));
    }
    waits_ = true;
    bool is_complete = true;
    for (const auto& work : pending_) is_complete &= work->wait(kForever);
    waits_ = false;
    ++exchanges_;
    bytes_sent_ += static_cast<int64_t>(out_bytes);
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

void GlooPeers::all_reduce(const at::Tensor& tensor) {
  std::vector<at::Tensor> tensors = {tensor};
  c10d::AllreduceOptions options;
  options.timeout = kForever;
  throw_if_broken();
  try {
    const auto work = gloo_->allreduce(tensors, options);
    waits_ = true;
    // It cannot be aborted, and ends by itself when another rank does.
    while (!is_done(*work)) throw_if_broken();
    waits_ = false;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    lose((rank() + 1) % size(), error.what());  // a neighbour in the ring; the lost rank has the cause
  }
  ++exchanges_;
  bytes_sent_ += static_cast<int64_t>(tensor.nbytes()) / size() * 2 * (size() - 1);
}

/// Waits for some time. Throws what went wrong with the work.
bool GlooPeers::is_done(c10d::Work& work) {
  try {
    work.wait(kWatch);
    return true;
  } catch (const std::exception&) {
    if (!work.isCompleted()) return false;
  }
  work.wait(kWatch);
  return true;
}

void GlooPeers::throw_if_broken() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!broken_.empty()) throw Error(ErrorKind::peer_lost, broken_, kAgain);
}

void GlooPeers::wait_for(const std::function<bool()>& is_done) {
  throw_if_broken();
  waits_ = true;
  try {
    for (const Clock::time_point begin = Clock::now(); !is_done(); throw_if_broken()) {
      if (Clock::now() - begin < kBusyPoll)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kPoll);
    }
  } catch (...) {
    waits_ = false;
    throw;
  }
  waits_ = false;
  ++exchanges_;
}

void GlooPeers::wait_for_cause() {
  for (milliseconds waited(0); waited < kLastWord; waited += kWatch) {
    throw_if_broken();
    std::this_thread::sleep_for(kWatch);
  }
  throw_if_broken();
}

std::string GlooPeers::publish_cause(const std::string& cause) noexcept {
  try {
    return rendezvous_.publish_cause(cause);
  } catch (...) {
    return cause;
  }
}

std::string GlooPeers::cause() noexcept {
  try {
    return rendezvous_.cause();
  } catch (...) {
    return "";
  }
}

Heartbeat GlooPeers::heartbeat_of(int rank) noexcept {
  try {
    return rendezvous_.heartbeat_of(rank);
  } catch (...) {
    return {};
  }
}

/// The connection to `peer` broke. The reason is what the first rank published, and that may be on its way.
void GlooPeers::lose(int peer, const std::string& what) {
  waits_ = false;
  {
    // Before the memory that they point to goes.
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.clear();
  }
  throw_if_broken();
  std::string cause = this->cause();
  for (milliseconds waited(0); cause.empty() && waited < kLastWord && !heartbeat_of(peer).has_ended();
       waited += kWatch) {
    std::this_thread::sleep_for(kWatch);
    cause = this->cause();
  }
  if (cause.empty()) cause = rendezvous_.failure();
  if (cause.empty()) {
    cause = publish_cause(heartbeat_of(peer).has_ended() ? format("rank {} has ended", peer)
                          : what.empty()                 ? format("rank {} is gone", peer)
                                         : format("rank {} is gone, or the connection to it is broken", peer));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (broken_.empty()) broken_ = cause;
  }
  throw_if_broken();
  throw Error(ErrorKind::bug, "a lost rank without a cause");
}

void GlooPeers::watch() {
  double now = 0;  // a clock that stands still while this process is stopped
  double broken_at = -1;
  for (Clock::time_point before = Clock::now(); !ends_; std::this_thread::sleep_for(kWatch)) {
    const Clock::time_point time = Clock::now();
    now += std::min(1.0, std::chrono::duration<double>(time - before).count());
    before = time;
    if (broken_at >= 0) {
      if (now - broken_at < kOverdue || !settings_.when_overdue) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      return settings_.when_overdue(broken_);
    }
    std::string cause = this->cause();
    if (cause.empty()) {
      if (now >= next_heartbeat_) {
        next_heartbeat_ = now + finder_.heartbeat_interval();
        send_heartbeat(waits_          ? Heartbeat::Doing::waits
                       : is_long_work_ ? Heartbeat::Doing::long_work
                                       : Heartbeat::Doing::computes);
      }
      cause = find_lost_rank(now);
      if (!cause.empty()) cause = publish_cause(cause);
    }
    if (cause.empty()) continue;
    broken_at = now;
    break_off(cause);
  }
}

void GlooPeers::send_heartbeat(Heartbeat::Doing doing) noexcept {
  try {
    rendezvous_.send_heartbeat({++heartbeats_, doing, ::getpid()});
  } catch (...) {  // rendezvous_.failure()
  }
}

/// Why this rank waits, or will wait, without end; empty where it does not, or not for long.
std::string GlooPeers::find_lost_rank(double now) {
  for (int other = 0; other < size(); ++other) {
    if (rendezvous_.is_dead(other)) {
      return format("rank {} (process {}) is gone", other, heartbeat_of(other).process);
    }
  }
  const int64_t exchange = waits_ ? exchanges_.load() : -1;
  if (exchange != seen_exchange_) finder_.begin_wait(now);
  seen_exchange_ = exchange;
  if (exchange < 0 || !finder_.needs_heartbeats(now)) return "";
  std::vector<Heartbeat> heartbeats;
  for (int other = 0; other < size(); ++other) heartbeats.push_back(heartbeat_of(other));
  return rendezvous_.failure().empty() ? finder_.look(now, heartbeats) : rendezvous_.failure();
}

/// Ends the wait of the thread that trains.
void GlooPeers::break_off(const std::string& cause) {
  const std::lock_guard<std::mutex> lock(mutex_);
  broken_ = cause;
  for (const auto& work : pending_) work->abort();
}

}  // namespace stoker::engine
