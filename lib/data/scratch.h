// SPDX-License-Identifier: Apache-2.0
// Memory that a worker writes before it reads it, and that does not add up: not zeroed, and large pieces come
// from the kernel and go back to it. Knows nothing of images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace stoker::data {

/// From the heap, or from the kernel when large. Throws std::bad_alloc.
void* allocate_scratch(size_t bytes);
void free_scratch(void* memory, size_t bytes) noexcept;

/// Leaves new elements as the memory is.
template <typename T>
struct ScratchAllocator {
  using value_type = T;

  ScratchAllocator() = default;
  template <typename U>
  ScratchAllocator(const ScratchAllocator<U>&) {}  // NOLINT: rebinding is implicit

  T* allocate(size_t count) { return static_cast<T*>(allocate_scratch(count * sizeof(T))); }
  void deallocate(T* memory, size_t count) noexcept { free_scratch(memory, count * sizeof(T)); }
  template <typename U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <typename U, typename... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }
  bool operator==(const ScratchAllocator&) const { return true; }
  bool operator!=(const ScratchAllocator&) const { return false; }
};

using ScratchBytes = std::vector<uint8_t, ScratchAllocator<uint8_t>>;

/// Empties a buffer of more than `keep_bytes` of which the sample at hand uses less than half: one large
/// image among small ones is then soon forgotten, while a set of large ones allocates once.
template <typename Buffer>
void forget_large(Buffer& buffer, size_t used_bytes, size_t keep_bytes) {
  if (buffer.size() > keep_bytes && used_bytes < buffer.size() / 2) Buffer().swap(buffer);
}

}  // namespace stoker::data
