/* SPDX-License-Identifier: Apache-2.0
 * LD_PRELOAD: files below $SLOW_DIR answer late, as a disk or a network file system does. The first read() after each
 * open() sleeps $SLOW_MICROSECONDS; with SLOW_ONCE=1 only the first time that a path is read, as with a page cache that
 * is cold. Needs no privileges. Built by scripts/bench/bottlenecks.py: cc -shared -fPIC -O2 slow_storage.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMaxFd = 65536, kSeen = 1 << 20 };
static _Atomic uint32_t first_read_of[kMaxFd]; /* hash of the path that was opened; 0: none of ours */
static _Atomic uint8_t seen[kSeen];            /* by hash */

static uint32_t hash(const char* path) {
  uint32_t h = 2166136261u;
  for (; *path; ++path) h = (h ^ (uint8_t)*path) * 16777619u;
  return h ? h : 1;
}

static void note(int fd, const char* path) {
  const char* dir = getenv("SLOW_DIR");
  if (fd < 0 || fd >= kMaxFd) return;
  int ours = dir && strncmp(path, dir, strlen(dir)) == 0;
  first_read_of[fd] = ours ? hash(path) : 0;
}

static void answer_late(int fd) {
  if (fd < 0 || fd >= kMaxFd) return;
  uint32_t h = atomic_exchange(&first_read_of[fd], 0);
  if (!h) return;
  const char* once = getenv("SLOW_ONCE");
  if (once && *once == '1' && atomic_exchange(&seen[h % kSeen], 1)) return;
  const char* text = getenv("SLOW_MICROSECONDS");
  if (text) usleep((useconds_t)atoi(text));
}

#define REAL(type, name, ...)                 \
  static type (*real)(__VA_ARGS__);           \
  if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define OPEN(name)                                        \
  int name(const char* path, int flags, ...) {            \
    REAL(int, name, const char*, int, ...);               \
    va_list list;                                         \
    va_start(list, flags);                                \
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0; \
    va_end(list);                                         \
    int fd = real(path, flags, mode);                     \
    note(fd, path);                                       \
    return fd;                                            \
  }
OPEN(open)
OPEN(open64)

ssize_t read(int fd, void* buffer, size_t size) {
  REAL(ssize_t, read, int, void*, size_t);
  answer_late(fd);
  return real(fd, buffer, size);
}

ssize_t pread(int fd, void* buffer, size_t size, off_t offset) {
  REAL(ssize_t, pread, int, void*, size_t, off_t);
  answer_late(fd);
  return real(fd, buffer, size, offset);
}

ssize_t pread64(int fd, void* buffer, size_t size, off64_t offset) {
  REAL(ssize_t, pread64, int, void*, size_t, off64_t);
  answer_late(fd);
  return real(fd, buffer, size, offset);
}
