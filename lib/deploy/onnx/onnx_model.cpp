// SPDX-License-Identifier: Apache-2.0
#include "deploy/onnx/onnx_model.h"

#include "core/error.h"
#include "core/format.h"
#include "core/text/protobuf.h"

namespace stoker::deploy {
namespace {

using core::ProtobufMessage;

// Field numbers and enumerators of onnx.proto3, IR version 7.
constexpr int64_t kIrVersion = 7;
namespace model_field {
constexpr int kIrVersion = 1, kProducer = 2, kProducerVersion = 3, kGraph = 7, kOpset = 8, kMetadata = 14;
}
namespace opset_field {
constexpr int kDomain = 1, kVersion = 2;
}
namespace pair_field {
constexpr int kKey = 1, kValue = 2;
}
namespace graph_field {
constexpr int kNode = 1, kName = 2, kInitializer = 5, kDescription = 10, kInput = 11, kOutput = 12;
}
namespace node_field {
constexpr int kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5;
}
namespace attribute_field {
constexpr int kName = 1, kFloat = 2, kInteger = 3, kText = 4, kIntegers = 8, kType = 20;
constexpr int kIsFloat = 1, kIsInteger = 2, kIsText = 3, kIsIntegers = 7;  // values of kType
}  // namespace attribute_field
namespace tensor_field {
constexpr int kShape = 1, kType = 2, kName = 8, kBytes = 9;
}
namespace value_field {
constexpr int kName = 1, kType = 2, kDescription = 3;
constexpr int kTensorType = 1;           // of TypeProto
constexpr int kElement = 1, kShape = 2;  // of TypeProto.Tensor
constexpr int kDimension = 1;            // of TensorShapeProto
constexpr int kDimensionSize = 1, kDimensionName = 2;
}  // namespace value_field

ProtobufMessage attribute_message(const OnnxAttribute& attribute) {
  ProtobufMessage message;
  message.add_bytes(attribute_field::kName, attribute.name);
  int64_t type = 0;
  if (const auto* integer = std::get_if<int64_t>(&attribute.value)) {
    message.add_integer(attribute_field::kInteger, *integer);
    type = attribute_field::kIsInteger;
  } else if (const auto* number = std::get_if<float>(&attribute.value)) {
    message.add_float(attribute_field::kFloat, *number);
    type = attribute_field::kIsFloat;
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    message.add_bytes(attribute_field::kText, *text);
    type = attribute_field::kIsText;
  } else {
    for (const int64_t value : std::get<std::vector<int64_t>>(attribute.value)) {
      message.add_integer(attribute_field::kIntegers, value);
    }
    type = attribute_field::kIsIntegers;
  }
  message.add_integer(attribute_field::kType, type);
  return message;
}

ProtobufMessage node_message(const OnnxNode& node) {
  ProtobufMessage message;
  for (const std::string& input : node.inputs) message.add_bytes(node_field::kInput, input);
  for (const std::string& output : node.outputs) message.add_bytes(node_field::kOutput, output);
  message.add_bytes(node_field::kName, node.outputs.at(0));
  message.add_bytes(node_field::kOp, node.op);
  for (const OnnxAttribute& attribute : node.attributes) {
    message.add_message(node_field::kAttribute, attribute_message(attribute));
  }
  return message;
}

ProtobufMessage tensor_message(const OnnxTensor& tensor) {
  ProtobufMessage message;
  for (const int64_t size : tensor.shape) message.add_integer(tensor_field::kShape, size);
  message.add_integer(tensor_field::kType, static_cast<int64_t>(tensor.type));
  message.add_bytes(tensor_field::kName, tensor.name);
  message.add_bytes(tensor_field::kBytes, tensor.bytes);
  return message;
}

ProtobufMessage value_message(const OnnxValue& value) {
  ProtobufMessage shape;
  ProtobufMessage batch;
  batch.add_bytes(value_field::kDimensionName, "batch");
  shape.add_message(value_field::kDimension, batch);
  for (const int64_t size : value.shape) {
    ProtobufMessage dimension;
    dimension.add_integer(value_field::kDimensionSize, size);
    shape.add_message(value_field::kDimension, dimension);
  }
  ProtobufMessage tensor_type;
  tensor_type.add_integer(value_field::kElement, static_cast<int64_t>(value.type));
  tensor_type.add_message(value_field::kShape, shape);
  ProtobufMessage type;
  type.add_message(value_field::kTensorType, tensor_type);
  ProtobufMessage message;
  message.add_bytes(value_field::kName, value.name);
  message.add_message(value_field::kType, type);
  if (!value.description.empty()) message.add_bytes(value_field::kDescription, value.description);
  return message;
}

ProtobufMessage graph_message(const OnnxModel& model) {
  ProtobufMessage message;
  for (const OnnxNode& node : model.nodes) message.add_message(graph_field::kNode, node_message(node));
  message.add_bytes(graph_field::kName, model.name);
  for (const OnnxTensor& tensor : model.tensors) message.add_message(graph_field::kInitializer, tensor_message(tensor));
  message.add_bytes(graph_field::kDescription, model.description);
  for (const OnnxValue& value : model.inputs) message.add_message(graph_field::kInput, value_message(value));
  for (const OnnxValue& value : model.outputs) message.add_message(graph_field::kOutput, value_message(value));
  return message;
}

void refuse_too_large(const OnnxModel& model) {
  constexpr size_t kMax = size_t{2'000'000'000};  // protobuf's limit of a message is 2 GiB
  size_t bytes = 0;
  for (const OnnxTensor& tensor : model.tensors) bytes += tensor.bytes.size();
  if (bytes < kMax) return;
  throw core::Error(core::ErrorKind::config,
                    core::format("the network has {} of weights; a file of ONNX holds less than 2 GB",
                                 core::bytes_text(static_cast<double>(bytes))),
                    "--format torchscript and safetensors have no such limit");
}

}  // namespace

std::string onnx_bytes(const OnnxModel& model) {
  refuse_too_large(model);
  ProtobufMessage message;
  message.add_integer(model_field::kIrVersion, kIrVersion);
  message.add_bytes(model_field::kProducer, model.producer);
  message.add_bytes(model_field::kProducerVersion, model.producer_version);
  message.add_message(model_field::kGraph, graph_message(model));
  ProtobufMessage opset;
  opset.add_bytes(opset_field::kDomain, "");
  opset.add_integer(opset_field::kVersion, model.opset);
  message.add_message(model_field::kOpset, opset);
  for (const auto& [key, value] : model.metadata) {
    ProtobufMessage pair;
    pair.add_bytes(pair_field::kKey, key);
    pair.add_bytes(pair_field::kValue, value);
    message.add_message(model_field::kMetadata, pair);
  }
  return message.bytes();
}

}  // namespace stoker::deploy
