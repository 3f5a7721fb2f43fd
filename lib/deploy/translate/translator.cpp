// SPDX-License-Identifier: Apache-2.0
#include "deploy/translate/translator.h"

namespace stoker::deploy {

OnnxModel translate_to_onnx(const TracedNetwork& traced, const std::string& input_name,
                            const std::vector<std::string>& output_names) {
  static const Translations translations = [] {
    Translations all;
    add_layer_translations(all);
    add_shape_translations(all);
    add_elementwise_translations(all);
    return all;
  }();
  return Translator(traced, translations).translate(input_name, output_names);
}

// Access of translations to the arguments and results of an operation.

std::string Operation::tensor(size_t argument) const { return translator_.name_of(value(argument)); }

std::vector<std::string> Operation::tensors(size_t argument) const {
  std::vector<std::string> names;
  for (const jit::Value* item : value(argument)->node()->inputs()) names.push_back(translator_.name_of(item));
  return names;
}

torch::Tensor Operation::constant(size_t argument) const {
  const auto found = translator_.constants().find(value(argument));
  return found == translator_.constants().end() ? torch::Tensor() : found->second.first;
}

std::string Operation::constant_name(size_t argument) const {
  return translator_.constants().at(value(argument)).second;
}

std::vector<int64_t> Operation::shape(size_t argument) const {
  const torch::Tensor known = constant(argument);
  if (known.defined()) return known.sizes().vec();
  return *Translator::tensor_type(value(argument))->sizes().concrete_sizes();
}

std::vector<int64_t> Operation::result_shape(size_t result) const {
  return *Translator::tensor_type(node_.outputs().at(result))->sizes().concrete_sizes();
}

at::ScalarType Operation::element(size_t argument) const {
  return *Translator::tensor_type(value(argument))->scalarType();
}

at::ScalarType Operation::element_argument(size_t argument) const {
  return static_cast<at::ScalarType>(integer(argument));
}

bool Operation::is_number(size_t argument) const {
  const auto known = Translator::plain(value(argument));
  return known && (known->isInt() || known->isDouble());
}

bool Operation::is_none(size_t argument) const {
  const auto known = Translator::plain(value(argument));
  return known && known->isNone();
}

bool Operation::is_list(size_t argument) const {
  const auto known = Translator::plain(value(argument));
  return known && known->isIntList();
}

namespace {

c10::IValue known_value(const std::optional<c10::IValue>& value) {
  if (!value) Translator::refuse("it computes the sizes of tensors from the input");
  return *value;
}

}  // namespace

int64_t Operation::integer(size_t argument) const { return known_value(Translator::plain(value(argument))).toInt(); }
bool Operation::flag(size_t argument) const { return known_value(Translator::plain(value(argument))).toBool(); }
std::vector<int64_t> Operation::integers(size_t argument) const {
  return known_value(Translator::plain(value(argument))).toIntVector();
}
double Operation::number(size_t argument) const {
  const c10::IValue known = known_value(Translator::plain(value(argument)));
  return known.isInt() ? static_cast<double>(known.toInt()) : known.toDouble();
}
std::string Operation::text(size_t argument) const {
  return known_value(Translator::plain(value(argument))).toStringRef();
}

std::string Operation::add(const std::string& op, std::vector<std::string> inputs,
                           std::vector<OnnxAttribute> attributes) const {
  return add_many(op, std::move(inputs), 1, std::move(attributes)).front();
}

std::vector<std::string> Operation::add_many(const std::string& op, std::vector<std::string> inputs, size_t outputs,
                                             std::vector<OnnxAttribute> attributes) const {
  return translator_.add_node(op, std::move(inputs), outputs, std::move(attributes));
}

std::string Operation::integers_constant(const std::vector<int64_t>& values) const {
  return translator_.add_tensor(torch::tensor(values, at::kLong), "sizes");
}
std::string Operation::integer_constant(int64_t value) const {
  return translator_.add_tensor(torch::tensor(value, at::kLong), "index");
}
std::string Operation::number_constant(double value) const { return translator_.add_number(value); }
std::string Operation::numbers_constant(const std::vector<double>& values) const {
  return translator_.add_tensor(torch::tensor(values, at::kDouble).to(at::kFloat), "numbers");
}
std::string Operation::tensor_constant(const torch::Tensor& tensor, const std::string& name) const {
  return translator_.add_tensor(tensor, name);
}

void Operation::set_result(const std::string& name) const { translator_.names()[node_.output()] = name; }

void Operation::set_results(const std::vector<std::string>& names) const {
  for (const jit::Use& use : node_.output()->uses()) {
    if (use.user->kind() != c10::prim::ListUnpack) refuse("it uses a list of tensors as a whole");
    for (size_t i = 0; i < names.size(); ++i) translator_.names()[use.user->outputs().at(i)] = names[i];
  }
}

void Operation::set_constant(const torch::Tensor& tensor, const std::string& name) const {
  translator_.constants()[node_.output()] = {tensor, name};
}

void Operation::refuse(const std::string& why) const { Translator::refuse(kind() + ": " + why); }

}  // namespace stoker::deploy
