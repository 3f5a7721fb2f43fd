// SPDX-License-Identifier: Apache-2.0
// From a recorded graph of LibTorch's operations to ONNX: walks the graph, keeps names and constants; what an operation
// becomes stands in translate_*.cpp.
#pragma once

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/format.h"
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
  /// The shape in the example; the first is the batch unless the graph has moved it.
  std::vector<int64_t> shape(size_t argument) const;
  std::vector<int64_t> result_shape(size_t result = 0) const;
  at::ScalarType element(size_t argument) const;
  /// The argument's element type that was requested, as in to().
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

  /// The name of the operation's result.
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

// The state of one translation: what values of the graph are called in the file, and which are constants. For this
// module alone.

namespace jit = torch::jit;

/// The state of one translation.
class Translator {
 public:
  Translator(const TracedNetwork& traced, const Translations& translations)
      : graph_(traced.graph()), translations_(translations) {
    modules_.emplace(graph_->inputs().at(0), Part{traced.module(), ""});
  }

  OnnxModel translate(const std::string& input_name, const std::vector<std::string>& output_names) {
    find_what_varies();
    refuse_unknown();
    const jit::Value* const input = graph_->inputs().at(1);
    names_[input] = input_name;
    model_.inputs.push_back({input_name, type_of(input), without_batch(input), ""});
    for (const jit::Node* node : graph_->nodes()) visit(*node);
    for (size_t i = 0; i < output_names.size(); ++i) {
      const jit::Value* const output = graph_->outputs().at(i);
      rename(name_of(output), output_names[i]);
      model_.outputs.push_back({output_names[i], type_of(output), without_batch(output), ""});
    }
    return std::move(model_);
  }

  /// The ONNX name of a value, which becomes a part of the file if it is a constant.
  const std::string& name_of(const jit::Value* value) {
    const auto known = names_.find(value);
    if (known != names_.end()) return known->second;
    const auto constant = constants_.find(value);
    if (constant == constants_.end()) {
      const std::optional<c10::IValue> number = plain(value);
      if (!number || !(number->isInt() || number->isDouble())) refuse("a value that is not a tensor is used as one");
      return names_[value] = add_number(number->isInt() ? static_cast<double>(number->toInt()) : number->toDouble());
    }
    return names_[value] = add_tensor(constant->second.first, constant->second.second);
  }

  std::string add_number(double value) { return add_tensor(torch::tensor(value, at::kFloat), "number"); }

  /// `name` is made unique.
  std::string add_tensor(const torch::Tensor& tensor, const std::string& name) {
    const torch::Tensor host = tensor.detach().to(torch::kCPU).contiguous();
    OnnxTensor added;
    added.name = unique(name);
    added.type = onnx_type(host.scalar_type());
    added.shape = host.sizes().vec();
    added.bytes.assign(static_cast<const char*>(host.data_ptr()), host.nbytes());
    model_.tensors.push_back(std::move(added));
    return model_.tensors.back().name;
  }

  std::vector<std::string> add_node(const std::string& op, std::vector<std::string> inputs, size_t outputs,
                                    std::vector<OnnxAttribute> attributes) {
    OnnxNode node{op, std::move(inputs), {}, std::move(attributes)};
    for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(unique(op));
    model_.nodes.push_back(node);
    return node.outputs;
  }

  /// A value that stands in the graph, such as a list of numbers; absent for what is computed.
  static std::optional<c10::IValue> plain(const jit::Value* value) {
    if (value->node()->kind() == c10::prim::Constant) {
      const auto constant = jit::toIValue(value);
      return constant ? std::optional<c10::IValue>(*constant) : std::nullopt;
    }
    if (value->node()->kind() != c10::prim::ListConstruct) return std::nullopt;
    c10::List<int64_t> integers;
    for (const jit::Value* item : value->node()->inputs()) {
      const std::optional<c10::IValue> integer = plain(item);
      if (!integer || !integer->isInt()) return std::nullopt;
      integers.push_back(integer->toInt());
    }
    return c10::IValue(integers);
  }

  std::unordered_map<const jit::Value*, std::string>& names() { return names_; }
  std::unordered_map<const jit::Value*, std::pair<torch::Tensor, std::string>>& constants() { return constants_; }

  [[noreturn]] static void refuse(const std::string& why) {
    throw core::Error(core::ErrorKind::config, "this network cannot be exported as ONNX: " + why,
                      "--format torchscript writes it for PyTorch");
  }

  static c10::TensorTypePtr tensor_type(const jit::Value* value) {
    const auto type = value->type()->cast<c10::TensorType>();
    if (!type || !type->sizes().concrete_sizes() || !type->scalarType()) refuse("the shape of a tensor is not known");
    return type;
  }

 private:
  struct Part {
    jit::Module module;
    std::string path;  ///< "layer1.0.", or empty
  };

  /// Values that depend on the input.
  void find_what_varies() {
    varying_ = {graph_->inputs().at(1)};
    for (const jit::Node* node : graph_->nodes()) {
      const auto inputs = node->inputs();
      if (std::none_of(inputs.begin(), inputs.end(), [&](const jit::Value* in) { return varying_.count(in) > 0; })) {
        continue;
      }
      varying_.insert(node->outputs().begin(), node->outputs().end());
    }
  }

  bool varies(const jit::Node& node) const {
    return node.outputs().empty() || varying_.count(node.outputs().at(0)) > 0;
  }

  /// Runs an operation on constants: its result becomes a part of the file. False where its arguments are not known.
  bool compute(const jit::Node& node) {
    jit::Stack stack;
    std::string name = "constant";
    for (const jit::Value* input : node.inputs()) {
      const auto found = constants_.find(input);
      const std::optional<c10::IValue> value =
          found != constants_.end() ? std::optional<c10::IValue>(found->second.first) : plain(input);
      if (!value && input->node()->kind() == c10::prim::ListConstruct) {
        c10::List<at::Tensor> list;
        for (const jit::Value* item : input->node()->inputs()) {
          const auto part = constants_.find(item);
          if (part == constants_.end()) return false;
          list.push_back(part->second.first);
        }
        stack.emplace_back(list);
        continue;
      }
      if (!value) return false;
      if (found != constants_.end() && name == "constant") name = found->second.second;
      stack.push_back(*value);
    }
    const torch::NoGradGuard no_gradients;
    node.getOperation()(stack);
    if (stack.size() != 1 || !stack[0].isTensor()) return false;
    constants_[node.output()] = {stack[0].toTensor(), name};
    return true;
  }

  /// All at once, before anything is made.
  void refuse_unknown() const {
    std::set<std::string> unknown;
    for (const jit::Node* node : graph_->nodes()) {
      const bool is_structure = node->kind() == c10::prim::Constant || node->kind() == c10::prim::GetAttr ||
                                node->kind() == c10::prim::ListConstruct || node->kind() == c10::prim::ListUnpack;
      const std::string kind = node->kind().toQualString();
      if (!is_structure && varies(*node) && translations_.count(kind) == 0) unknown.insert(kind);
    }
    if (unknown.empty()) return;
    const std::vector<std::string> kinds(unknown.begin(), unknown.end());
    refuse("ONNX has no operator here for " + core::list_text(kinds, kinds.size()));
  }

  void visit(const jit::Node& node) {
    if (node.kind() == c10::prim::GetAttr) return read_attribute(node);
    if (node.kind() == c10::prim::Constant) {
      const std::optional<c10::IValue> value = plain(node.output());
      if (value && value->isTensor()) constants_[node.output()] = {value->toTensor(), "constant"};
      return;
    }
    if (node.kind() == c10::prim::ListConstruct) return;
    if (node.kind() == c10::prim::ListUnpack) return;  // its outputs got their names from what made the list
    if (!varies(node) && compute(node)) return;
    const auto translation = translations_.find(node.kind().toQualString());
    if (translation == translations_.end())
      refuse(core::format("ONNX has no operator here for {}", node.kind().toQualString()));
    translation->second(Operation(node, *this));
  }

  void read_attribute(const jit::Node& node) {
    const Part& owner = modules_.at(node.input());
    const std::string name = node.s(c10::attr::name);
    const c10::IValue value = owner.module.attr(name);
    if (value.isTensor()) {
      constants_[node.output()] = {value.toTensor(), owner.path + name};
    } else if (value.isModule()) {
      modules_.emplace(node.output(), Part{value.toModule(), owner.path + name + "."});
    }
  }

  std::string unique(const std::string& name) {
    std::string candidate = name;
    for (int64_t& n = counts_[name]; !taken_.insert(candidate).second;) candidate = name + "_" + std::to_string(++n);
    return candidate;
  }

  void rename(const std::string& from, const std::string& to) {
    for (OnnxNode& node : model_.nodes) {
      for (auto* names : {&node.inputs, &node.outputs}) {
        for (std::string& name : *names) {
          if (name == from) name = to;
        }
      }
    }
    for (auto& [value, name] : names_) {
      if (name == from) name = to;
    }
  }

  static OnnxType onnx_type(at::ScalarType type) {
    if (type == at::kFloat) return OnnxType::float32;
    if (type == at::kByte) return OnnxType::uint8;
    if (type == at::kLong) return OnnxType::int64;
    refuse(core::format("it holds tensors of type {}", c10::toString(type)));
  }
  static OnnxType type_of(const jit::Value* value) { return onnx_type(*tensor_type(value)->scalarType()); }
  static std::vector<int64_t> without_batch(const jit::Value* value) {
    const std::vector<int64_t> shape = *tensor_type(value)->sizes().concrete_sizes();
    return {shape.begin() + 1, shape.end()};
  }

  std::shared_ptr<jit::Graph> graph_;
  const Translations& translations_;
  std::set<const jit::Value*> varying_;
  OnnxModel model_;
  std::unordered_map<const jit::Value*, Part> modules_;
  std::unordered_map<const jit::Value*, std::pair<torch::Tensor, std::string>> constants_;
  std::unordered_map<const jit::Value*, std::string> names_;
  std::set<std::string> taken_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace stoker::deploy
