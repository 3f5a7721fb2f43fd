// SPDX-License-Identifier: Apache-2.0
// The exchange between the ranks of a data-parallel run. A rank is one process with its device; each computes gradients
// of its own share of an update's images, and a sum over all ranks makes them the gradient of the whole update.
//
// All ranks make the same calls in the same order; each call returns when every rank has made it. Only abort() is
// different: it may come at any time and from any thread, the other calls from one thread per rank.
// Every call but abort() throws core::Error{peer_lost} when another rank has aborted, with the message of that rank, or
// when it is gone. Nothing can be exchanged afterwards: every later call throws the same.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::engine {

/// The cause that a rank passes to abort() when it was requested to stop: this, and the name of the signal.
inline constexpr const char* kStoppedBySignal = "stopped by SIG";
/// The name of the signal, as in "TERM", where that is why a rank is gone; else empty. That is not a failure of the
/// other ranks, which the same signal may not have reached yet.
inline std::string stop_signal_in(const std::string& cause) {
  const std::string sign = std::string(" failed: ") + kStoppedBySignal;
  const size_t at = cause.find(sign);
  return at == std::string::npos ? "" : cause.substr(at + sign.size());
}

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;  ///< [0, size()); rank 0 is the root, which writes the files of the run
  virtual int size() const = 0;  ///< at least 1

  /// Replaces each tensor by its sum over all ranks, in place. Number, shapes, types and order of the tensors are the
  /// same on all ranks. Sums follow a fixed tree, so that all ranks end with the same bits, whenever each of them
  /// comes: rank r is added to rank r + h, where h is half of the ranks, then a quarter of them, down to 1; where their
  /// number is not a power of two, it counts as the next one, without the ranks that there are not. No gradient is
  /// recorded. All lie on one device, the CPU or one that sums_on() was true for; the sums are complete, also on the
  /// device, when this returns.
  virtual void sum(const std::vector<at::Tensor>& tensors) = 0;
  /// Whether sum() adds tensors of this rank's device where they are; else they have to be on the CPU. All ranks call
  /// it, each with its device, and get the same result. May take some seconds the first time, for ranks connect then.
  virtual bool sums_on(const at::Device& device) { return device.is_cpu(); }
  /// Sums one contiguous tensor, in whatever order its transport adds: all ranks end with the same bits, but these may
  /// depend on the number of ranks.
  virtual void sum_in_any_order(const at::Tensor& tensor) { sum({tensor}); }
  /// The bytes of the root, on every rank. What the others pass is not looked at.
  virtual std::string from_root(const std::string& bytes) = 0;
  /// The bytes of all ranks, by rank, on every rank.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
  /// Reports to all ranks that this one cannot continue, and why; wakes those that wait. Returns whether it is the
  /// first to do so: later causes are ignored. Does not throw.
  virtual bool abort(const std::string& why) noexcept = 0;

  /// By sums so far, on this rank.
  virtual int64_t bytes_sent() const { return 0; }

  /// Announces what this rank does from here on: something that may take any time, such as a checkpoint, or something
  /// that takes all ranks about as long, such as an update. One that the others wait for too long is lost only in the
  /// latter; one that sends no heartbeat, in both. A rank begins with long work.
  virtual void set_long_work(bool /*is_long*/) noexcept {}

  bool is_root() const { return rank() == 0; }
  bool is_alone() const { return size() == 1; }
};

/// The group of a run that has a single rank: exchanges nothing.
class SoloGroup : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void sum(const std::vector<at::Tensor>&) override {}
  std::string from_root(const std::string& bytes) override { return bytes; }
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
  bool abort(const std::string&) noexcept override { return true; }
};

/// The group of a run of one process.
inline Group& alone() {
  static SoloGroup group;
  return group;
}

/// For its lifetime this rank does what takes all ranks about as long; before and after it, work that may take long.
class WorkInStep {
 public:
  explicit WorkInStep(Group& group) : group_(group) { group_.set_long_work(false); }
  ~WorkInStep() { group_.set_long_work(true); }
  WorkInStep& operator=(WorkInStep&&) = delete;  // not copied, not moved

 private:
  Group& group_;
};

}  // namespace stoker::engine
