// SPDX-License-Identifier: Apache-2.0
// What an allocator of CPU tensors looks like to every release of LibTorch.
#pragma once

#include <c10/core/Allocator.h>

#include <cstring>

namespace stoker::engine {

/// `Self` has static functions `c10::DataPtr block(size_t bytes)` and `void free_block(void*)`. Whether allocate() is
/// const and whether copy_data() exists depends on the release: without `override` each is there for those that need
/// it.
template <class Self>
class CpuAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) const { return Self::block(bytes); }
  c10::DataPtr allocate(size_t bytes) { return Self::block(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const { std::memcpy(to, from, bytes); }
  c10::DeleterFnPtr raw_deleter() const { return &Self::free_block; }
};

}  // namespace stoker::engine
