// SPDX-License-Identifier: Apache-2.0
#include "core/crash/code_map.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/open_retrying.h"

namespace stoker::core {
namespace {

uintptr_t hexadecimal(char*& at) {
  uintptr_t number = 0;
  for (;; ++at) {
    const char digit = *at;
    if (digit >= '0' && digit <= '9') {
      number = number << 4 | static_cast<uintptr_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      number = number << 4 | static_cast<uintptr_t>(digit - 'a' + 10);
    } else {
      return number;
    }
  }
}

bool same(const char* one, const char* other) {
  while (*one != '\0' && *one == *other) ++one, ++other;
  return *one == *other;
}

/// The kernel marks a file that was replaced while it was in use.
void cut_deleted(char* path) {
  constexpr const char* kMark = " (deleted)";
  for (; *path != '\0'; ++path) {
    if (same(path, kMark)) *path = '\0';
    if (*path == '\0') return;
  }
}

}  // namespace

/// "55d0c0a00000-55d0c0a21000 r-xp 00002000 fd:01 1234   /usr/lib/libdnnl.so.2.7"
void CodeMap::take_line(char* line, const char* program, const char* name) {
  Mapping mapping;
  mapping.begin = hexadecimal(line);
  if (*line++ != '-') return;
  mapping.end = hexadecimal(line);
  if (*line != ' ' || line[1] == '\0' || line[2] == '\0' || line[3] != 'x') return;
  while (*line != '/' && *line != '\0') ++line;
  if (*line == '\0' || count_ == kMost) return;
  cut_deleted(line);
  const char* file = line;
  for (const char* at = line; *at != '\0'; ++at) {
    if (*at == '/') file = at + 1;
  }
  if (same(line, program)) file = name;
  for (size_t i = 0; i + 1 < sizeof mapping.file && file[i] != '\0'; ++i) mapping.file[i] = file[i];
  mappings_[count_++] = mapping;
}

void CodeMap::read(const char* program, const char* name) {
  count_ = 0;
  const int fd = open_retrying("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char block[4096], line[1024];  // a longer path is cut
  size_t used = 0;
  for (;;) {
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (ssize_t i = 0; i < got; ++i) {
      if (block[i] != '\n') {
        if (used + 1 < sizeof line) line[used++] = block[i];
        continue;
      }
      line[used] = '\0';
      take_line(line, program, name);
      used = 0;
    }
  }
  ::close(fd);
}

const char* CodeMap::file_of(uintptr_t address) const {
  for (size_t i = 0; i < count_; ++i) {
    if (address >= mappings_[i].begin && address < mappings_[i].end) return mappings_[i].file;
  }
  return nullptr;
}

size_t copy_if_there(uintptr_t address, void* to, size_t bytes) {
  const int fd = open_retrying("/proc/self/mem", O_RDONLY | O_CLOEXEC);  // a read of it fails where there is no memory
  if (fd < 0) return 0;
  constexpr size_t kPage = 4096;
  size_t done = 0;
  while (done < bytes) {
    const size_t to_page_end = kPage - (address + done) % kPage, rest = bytes - done;
    const size_t wanted = rest < to_page_end ? rest : to_page_end;
    const ssize_t got = ::pread(fd, static_cast<char*>(to) + done, wanted, static_cast<off_t>(address + done));
    if (got != static_cast<ssize_t>(wanted)) break;
    done += wanted;
  }
  ::close(fd);
  return done;
}

}  // namespace stoker::core
