// SPDX-License-Identifier: Apache-2.0
// An ONNX model as plain values, and its bytes: https://github.com/onnx/onnx/blob/main/docs/IR.md. Without LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace stoker::deploy {

/// Numbers as the schema has them.
enum class OnnxType { float32 = 1, uint8 = 2, int64 = 7 };

/// A tensor that is part of the file.
struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::float32;
  std::vector<int64_t> shape;
  std::string bytes;  ///< little-endian, without gaps
};

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>> value;
};

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
};

/// An input or output of the whole graph. Its first dimension is the batch, of any size.
struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::float32;
  std::vector<int64_t> shape;  ///< what follows the batch
  std::string description;
};

struct OnnxModel {
  int64_t opset = 13;
  std::string producer, producer_version, name, description;
  std::vector<OnnxNode> nodes;  ///< in an order in which they can be computed
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// The bytes of a .onnx file. Throws Error{config} for more than 2 GB, which the format cannot hold in one file.
std::string onnx_bytes(const OnnxModel& model);

}  // namespace stoker::deploy
