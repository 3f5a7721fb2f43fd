// SPDX-License-Identifier: Apache-2.0
// Copies of tensors in one block of host memory, so that training goes on while they are written.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/image_model.h"

namespace stoker::engine {

using model::NamedTensor;

/// The block stays for the next save: fresh memory would cost more than the copy. One thread at a time.
class Staging {
 public:
  /// Of `device` tensors; page-locked where that is a CUDA device.
  explicit Staging(torch::Device device) : device_(device) {}

  /// Copies of all groups, in CPU memory with the strides of their tensors, good until the next call. Waits for the
  /// device once, at the end. Throws Error{out_of_memory}.
  std::vector<std::vector<NamedTensor>> copy(const std::vector<std::vector<NamedTensor>>& groups);

  int64_t bytes() const { return block_.defined() ? block_.numel() : 0; }

 private:
  torch::Device device_;
  std::unique_ptr<char[]> memory_;  ///< of a CPU's copies: LibTorch's allocator there is for what comes and goes
  torch::Tensor block_;             ///< uint8 [bytes]
};

}  // namespace stoker::engine
