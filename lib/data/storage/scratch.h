// SPDX-License-Identifier: Apache-2.0
// Memory that a worker writes before it reads it, and that does not add up: not zeroed, and large pieces come
// from the kernel and go back to it.
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

/// From this size on memory comes from the kernel: fresh pages cost time, but are gone when they are given back.
inline constexpr size_t kKernelBytes = 640 << 10;  // a photograph of 0.2 megapixels stays on the heap, which is faster

/// After use: a buffer of the heap goes back to it, where the next worker finds it, so that workers hold together what
/// they use at one moment and not each its largest. One from the kernel stays as long as samples use half of it: a set
/// of large images allocates once, one among small ones is soon forgotten.
template <typename Buffer>
void give_back(Buffer& buffer, size_t used_bytes) {
  const size_t bytes = buffer.capacity() * sizeof(typename Buffer::value_type);
  if (bytes < kKernelBytes || used_bytes < bytes / 2) Buffer().swap(buffer);
}

}  // namespace stoker::data
