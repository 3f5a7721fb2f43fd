// SPDX-License-Identifier: Apache-2.0
#include "data/scratch.h"

#include <sys/mman.h>

#include <cstdlib>

namespace stoker::data {
namespace {

/// A photograph of 0.2 megapixels stays on the heap, which is faster.
constexpr size_t kLargeBytes = 640 << 10;

}  // namespace

void* allocate_scratch(size_t bytes) {
  void* memory = nullptr;
  if (bytes < kLargeBytes) {
    memory = std::malloc(bytes);
  } else {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  }
  if (memory == nullptr && bytes > 0) throw std::bad_alloc();
  return memory;
}

void free_scratch(void* memory, size_t bytes) noexcept {
  if (bytes < kLargeBytes) {
    std::free(memory);
  } else {
    ::munmap(memory, bytes);
  }
}

}  // namespace stoker::data
