// SPDX-License-Identifier: Apache-2.0
// A device without hardware: streams are lists of work that is done later, a piece now and then in a random order that
// their events allow, on memory that is handed out again as CUDA's caching allocator does it. What reads too early, or
// from memory that somebody else has got meanwhile, reads wrong numbers. It stands behind LibTorch's own interfaces
// (device PrivateUse1), so that code for devices runs on it as it is; simulated_operations.cpp has what it computes.
// Not simulated: random numbers of the device, autocast, times, a second device.
#pragma once

#include <c10/core/Stream.h>
#include <torch/types.h>

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/rng.h"

namespace stoker::fixtures {

/// Faults of the device, or of its user.
enum class DeviceFault {
  none,
  no_wait,                 ///< a stream does not wait for an event
  wait_forgotten,          ///< now and then
  done_too_early,          ///< an event counts as passed although it is not
  done_early_sometimes,    ///< now and then
  no_record_stream,        ///< memory is free although another stream still reads it
  labels_not_recorded,     ///< record_stream is missing for int64 alone
  recorded_for_copying,    ///< for the stream that wrote it, not for the one that reads
  no_synchronisation,      ///< waiting for a stream returns at once
  event_on_wrong_stream,   ///< an event is recorded on the stream that computes
  copies_on_wrong_stream,  ///< work goes to the stream that computes while another one is current
  reads_too_early          ///< the host reads numbers before the work that makes them is done
};

/// The one such device of a process; one thread at a time uses it.
class SimulatedDevice {
 public:
  static SimulatedDevice& instance();
  static torch::Device device() { return {c10::DeviceType::PrivateUse1, 0}; }

  /// From here on: another order of things, and a fault. Whatever was under way is done.
  void begin(uint64_t seed, DeviceFault fault);
  /// Does all that was requested.
  void finish();
  /// Does some of it.
  void run_pending();
  /// Pending operations are never done: they may write to memory of the host that is about to go.
  void forget();
  /// The error of the first operation that failed since begin(); empty: none.
  const std::string& failure() const { return failure_; }

  /// How often the host has waited to read numbers, since the process began.
  int64_t reads() const { return reads_; }

  // Functions of LibTorch's interfaces.
  using StreamId = c10::StreamId;
  StreamId current = 0;  ///< 0 computes, the others are of the pool
  StreamId stream_from_pool();
  void work(std::function<void()> done_later);  ///< on the current stream
  void record(int64_t& event, StreamId stream);
  void wait(StreamId stream, int64_t event);
  bool passed(int64_t event);
  void synchronise(StreamId stream);
  void finish_work();   ///< on the current stream: before memory of the host goes that it copies from
  void wait_to_read();  ///< before the host reads what the current stream computes
  void use_on(const torch::Tensor& tensor, StreamId stream);
  c10::DataPtr allocate(size_t bytes);
  void give_back(void* memory);

 private:
  struct Piece {
    std::function<void()> run;
    int64_t waits_for = 0;  ///< an event; 0: none
  };
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<char, Free>;
  struct Block {
    Memory memory;
    size_t bytes = 0;
    StreamId stream = 0;             ///< that it was allocated on
    std::vector<StreamId> used_on;   ///< besides
    std::vector<int64_t> free_once;  ///< these events have passed
    bool is_free = false;
  };

  bool do_one(StreamId stream);
  void drain(StreamId stream);
  bool sometimes() { return rng_.below(3) == 0; }

  core::Rng rng_{0, core::RngPurpose::init, 0, 0};
  uint64_t pace_ = 4;  ///< pieces of work that are done at a time, at most; 0: none unless somebody waits
  DeviceFault fault_ = DeviceFault::none;
  std::string failure_;
  int64_t reads_ = 0;
  std::vector<std::deque<Piece>> streams_ = std::vector<std::deque<Piece>>(2);
  std::vector<bool> has_passed_ = {true};  ///< by event
  std::map<void*, Block> blocks_;
};

}  // namespace stoker::fixtures
