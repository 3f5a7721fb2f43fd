// SPDX-License-Identifier: Apache-2.0
// Tensors of LibTorch from a file of weights.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <unordered_map>

#include "weights/file/weight_file.h"

namespace stoker::weights {

at::ScalarType torch_type(NumberType type);

/// Reads each storage at most once, when a tensor of it is first asked for. Borrows the file.
class TensorReader {
 public:
  explicit TensorReader(const WeightFile& file) : file_(file) {}

  /// The tensor at a place of WeightFile::tensors: CPU, a view of its storage. Throws Error{data, io}.
  torch::Tensor read(size_t place);

 private:
  const WeightFile& file_;
  std::unordered_map<size_t, torch::Tensor> storages_;  // uint8 [bytes]
};

}  // namespace stoker::weights
