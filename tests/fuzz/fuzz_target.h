// SPDX-License-Identifier: Apache-2.0
// Common parts of fuzz targets: a check that ends the process, choices drawn from the input, bytes as a file.
// A target defines LLVMFuzzerTestOneInput, so that libFuzzer or the driver of this folder can run it.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

/// Run on every input; must return 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);
/// Optional: changes an input of `size` bytes in place, at most to `max_size`; returns the new size.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned int seed);
/// For custom mutators: one change, independent of formats.
extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size);

namespace stoker::fuzz {

/// A property that every input must keep.
#define FUZZ_CHECK(condition)                                                               \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      std::fprintf(stderr, "%s:%d: broken property: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                         \
    }                                                                                       \
  } while (false)

/// Numbers that follow from the input alone, so that a file reproduces what a run did.
class Choices {
 public:
  Choices(const uint8_t* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) state_ = (state_ ^ bytes[i]) * 0x100000001B3;  // FNV-1a
  }
  explicit Choices(uint64_t seed) : state_(seed) {}

  /// In [0, count); `count` is at least 1. The generator is splitmix64 (Steele, Lea, Flood 2014).
  uint64_t below(uint64_t count) {
    uint64_t mixed = state_ += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    return (mixed ^ mixed >> 31) % count;
  }
  bool one_in(uint64_t count) { return below(count) == 0; }

 private:
  uint64_t state_ = 0xCBF29CE484222325;
};

/// A file that lives in memory only, for readers that want a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    FUZZ_CHECK(fd_ >= 0);
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile& operator=(MemoryFile&&) = delete;  // not copied, not moved

  const std::string& path() const { return path_; }
  void fill(const uint8_t* bytes, size_t size) {
    FUZZ_CHECK(::ftruncate(fd_, 0) == 0);
    FUZZ_CHECK(::pwrite(fd_, bytes, size, 0) == static_cast<ssize_t>(size));
  }

 private:
  int fd_;
  std::string path_;
};

}  // namespace stoker::fuzz
