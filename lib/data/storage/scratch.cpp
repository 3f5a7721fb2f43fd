// SPDX-License-Identifier: Apache-2.0
#include "data/storage/scratch.h"

#include <sys/mman.h>

#include <cstdlib>

namespace stoker::data {
void* allocate_scratch(size_t bytes) {
  void* memory = nullptr;
  if (bytes < kKernelBytes) {
    memory = std::malloc(bytes);
  } else {
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  }
  if (memory == nullptr && bytes > 0) throw std::bad_alloc();
  return memory;
}

void free_scratch(void* memory, size_t bytes) noexcept {
  if (bytes < kKernelBytes) {
    std::free(memory);
  } else {
    ::munmap(memory, bytes);
  }
}

}  // namespace stoker::data
