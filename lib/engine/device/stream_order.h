// SPDX-License-Identifier: Apache-2.0
// The order of work on a device between threads: one computes, another one works beside it on a stream of its own.
// A CPU needs none of this: its calls return when their work is done.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace stoker::engine {

class StreamOrder {
 public:
  virtual ~StreamOrder() = default;
  /// `mark` stands for all that the calling thread has given to its current stream so far. One thread at a time for
  /// each mark.
  virtual void set(size_t mark) = 0;
  /// Work that the calling thread queues on its current stream from here on begins when all before `mark` is done.
  /// Nothing for a mark that was never set. Returns at once: the device waits.
  virtual void wait(size_t mark) = 0;
  /// Until all is done that the calling thread has given to its current stream.
  virtual void finish() = 0;
  /// Calls `work`; meanwhile the current stream of this thread is another one than that of any other thread.
  virtual void on_own_stream(const std::function<void()>& work) = 0;
};

/// With `marks` marks; null for a CPU.
std::unique_ptr<StreamOrder> stream_order(const c10::Device& device, size_t marks);

/// Waits until all is done that the calling thread has given to its current stream of any device; nothing to wait for
/// on a CPU.
void finish_stream(const c10::Device& device);

}  // namespace stoker::engine
