// SPDX-License-Identifier: Apache-2.0
// open(2) that a signal does not end: file systems on a network or in user space may return EINTR.
#pragma once

#include <fcntl.h>

#include <cerrno>

namespace stoker::core {

/// Opens with O_CLOEXEC, and again while a signal interrupts it. Returns the descriptor, or -1 with errno.
inline int open_retrying(const char* path, int flags, mode_t mode = 0) {
  int fd;
  do {
    fd = ::open(path, flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

}  // namespace stoker::core
