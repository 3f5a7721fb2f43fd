// SPDX-License-Identifier: Apache-2.0
// Measuring with another number of CPU threads than the run's.
#pragma once

#include <ATen/Parallel.h>

#include <cstdint>

namespace stoker::engine {

/// For its lifetime LibTorch computes with `threads` CPU threads; then with as many as before.
class ThreadCount {
 public:
  explicit ThreadCount(int64_t threads) : before_(at::get_num_threads()) { set(threads); }
  ~ThreadCount() { at::set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  void set(int64_t threads) const { at::set_num_threads(static_cast<int>(threads)); }

 private:
  const int before_;
};

}  // namespace stoker::engine
