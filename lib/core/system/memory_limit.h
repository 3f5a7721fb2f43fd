// SPDX-License-Identifier: Apache-2.0
// A bound on what this process may allocate, so that too much of it is an error and not the end of the process by
// the kernel's hand.
#pragma once

#include <sys/resource.h>

namespace stoker::core {

/// While it lives, this process cannot allocate more than the machine has free now: std::bad_alloc, or what a
/// library makes of ENOMEM. Sets RLIMIT_DATA of the whole process; one at a time. Where the machine does not report how
/// much is free there is no bound. Not for processes with a device at work: drivers reserve without using.
class MemoryLimit {
 public:
  MemoryLimit();
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
  bool active_ = false;
};

}  // namespace stoker::core
