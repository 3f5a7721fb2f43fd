// SPDX-License-Identifier: Apache-2.0
// From a recorded graph of LibTorch's operations to ONNX: walks the graph, keeps names and constants; what an operation
// becomes stands in translate_*.cpp.
#pragma once

#include <torch/csrc/jit/ir/ir.h>
#include <torch/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "deploy/onnx/onnx_model.h"
#include "deploy/trace/traced_network.h"

namespace stoker::deploy {

class Translator;

/// One operation of the graph while it is translated. Arguments are numbered as in LibTorch's signature.
class Operation {
 public:
  Operation(const torch::jit::Node& node, Translator& translator) : node_(node), translator_(translator) {}

  std::string kind() const { return node_.kind().toQualString(); }
  /// The ONNX name of a tensor; a weight or a number becomes a part of the file.
  std::string tensor(size_t argument) const;
  std::vector<std::string> tensors(size_t argument) const;
  /// The tensor itself where it does not depend on the input; undefined where it does.
  torch::Tensor constant(size_t argument) const;
  /// Of the example; the first is the batch unless the graph has moved it.
  std::vector<int64_t> shape(size_t argument) const;
  std::vector<int64_t> result_shape(size_t result = 0) const;
  at::ScalarType element(size_t argument) const;
  /// The argument's element type that was asked for, as in to().
  at::ScalarType element_argument(size_t argument) const;
  size_t argument_count() const { return node_.inputs().size(); }
  bool is_number(size_t argument) const;
  bool is_none(size_t argument) const;
  bool is_list(size_t argument) const;
  int64_t integer(size_t argument) const;
  double number(size_t argument) const;
  bool flag(size_t argument) const;
  std::string text(size_t argument) const;
  std::vector<int64_t> integers(size_t argument) const;

  /// Adds a node with one output and returns the output's name.
  std::string add(const std::string& op, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes = {}) const;
  /// Adds a node with several outputs and returns their names.
  std::vector<std::string> add_many(const std::string& op, std::vector<std::string> inputs, size_t outputs,
                                    std::vector<OnnxAttribute> attributes = {}) const;
  /// A constant of the file.
  std::string integers_constant(const std::vector<int64_t>& values) const;
  std::string integer_constant(int64_t value) const;
  std::string number_constant(double value) const;
  std::string tensor_constant(const torch::Tensor& tensor, const std::string& name) const;
  /// A constant [values] of float32.
  std::string numbers_constant(const std::vector<double>& values) const;

  /// What the operation's result is called.
  void set_result(const std::string& name) const;
  void set_results(const std::vector<std::string>& names) const;
  /// The result does not depend on the input.
  void set_constant(const torch::Tensor& tensor, const std::string& name) const;
  std::string constant_name(size_t argument) const;

  /// Throws Error{config}: ONNX has nothing for this.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  const torch::jit::Value* value(size_t argument) const { return node_.inputs().at(argument); }

  const torch::jit::Node& node_;
  Translator& translator_;
};

using Translation = std::function<void(const Operation&)>;
using Translations = std::map<std::string, Translation>;
// One per file.
void add_layer_translations(Translations& translations);
void add_shape_translations(Translations& translations);
void add_elementwise_translations(Translations& translations);

/// Nodes, weights, and the values of the graph's outputs, in the order of the trace: shapes without the batch, names as
/// given, descriptions empty. The input is called `input_name`. Throws Error{config} naming the operations that ONNX
/// has nothing for.
OnnxModel translate_to_onnx(const TracedNetwork& traced, const std::string& input_name,
                            const std::vector<std::string>& output_names);

}  // namespace stoker::deploy
