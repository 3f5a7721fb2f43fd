// SPDX-License-Identifier: Apache-2.0
// Runs a file of ONNX by another program's implementation, in a process of its own: stoker-check-onnx, which alone
// links OpenCV's networks. Their libraries bring a second copy of what LibTorch brings, so they stay out of this one.
#pragma once

#include <torch/types.h>

#include <string>

namespace stoker::train {

struct OnnxAnswers {
  std::string reader;          ///< "OpenCV 4.6.0"
  bool takes_batches = false;  ///< else it could run images one by one alone
  torch::Tensor outputs;       ///< float32, as the file has them
};

/// `inputs`: float32 or uint8 [images, ...]. Throws Error{unavailable} where stoker-check-onnx is not installed,
/// Error{config} with the reader's words where it cannot read or run the file.
OnnxAnswers run_onnx(const std::string& path, const torch::Tensor& inputs);

}  // namespace stoker::train
