// SPDX-License-Identifier: Apache-2.0
#include "proof/operation/operation.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>
#include <dlfcn.h>

#include "core/error.h"
#include "core/format.h"
#include "engine/device/device.h"
#include "proof/rules/rules.h"

namespace stoker::proof {
namespace {

using core::format;

at::Tensor without_numbers(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

c10::IValue without_numbers(const c10::IValue& value) {
  return value.isTensor() ? c10::IValue(without_numbers(value.toTensor())) : value;
}

/// Fits a line over the number of images.
int64_t extended(int64_t of_two, int64_t of_three, int64_t images) {
  return of_two + (of_three - of_two) * (images - 2);
}

std::vector<int64_t> extended(std::vector<int64_t> of_two, std::vector<int64_t> of_three, int64_t images) {
  if (of_two.size() != of_three.size()) throw core::Error(core::ErrorKind::bug, "two passes differ in dimensions");
  std::vector<int64_t> result;
  for (size_t i = 0; i < of_two.size(); ++i) result.push_back(extended(of_two[i], of_three[i], images));
  return result;
}

c10::IValue extended(const c10::IValue& of_two, const c10::IValue& of_three, int64_t images) {
  if (of_two.isTensor() && of_three.isTensor()) {
    const at::Tensor &two = of_two.toTensor(), &three = of_three.toTensor();
    if (!two.defined() || !three.defined()) return of_two;
    return at::empty_strided(extended(two.sizes().vec(), three.sizes().vec(), images),
                             extended(two.strides().vec(), three.strides().vec(), images), two.options());
  }
  if (of_two.isInt() && of_three.isInt()) return extended(of_two.toInt(), of_three.toInt(), images);
  if (of_two.isIntList() && of_three.isIntList()) {
    return extended(of_two.toIntVector(), of_three.toIntVector(), images);
  }
  return of_two;
}

std::string tensor_text(const at::Tensor& tensor) {
  if (!tensor.defined()) return "none";
  return format("{}[{}]/{}", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ","),
                fmt::join(tensor.strides(), ","));
}

std::string value_text(const c10::IValue& value) {
  if (value.isTensor()) return tensor_text(value.toTensor());
  if (value.isInt()) return std::to_string(value.toInt());
  if (value.isDouble()) return format("{}", value.toDouble());
  if (value.isBool()) return value.toBool() ? "true" : "false";
  if (value.isIntList()) return format("({})", fmt::join(value.toIntVector(), ","));
  if (value.isBoolList()) return format("({})", fmt::join(value.toBoolList().vec(), ","));
  if (value.isNone()) return "none";
  return "?";
}

std::string sizes_text(const at::Tensor& tensor) { return format("{}", fmt::join(tensor.sizes(), "x")); }

/// The name in messages.
std::string spoken_name(const std::string& name) {
  if (name == "aten::convolution") return "convolution";
  if (name == "aten::convolution_backward") return "gradient of a convolution";
  const std::string plain = name.substr(name.rfind(':') + 1);
  return is_matrix_product(name) ? format("matrix multiplication ({})", plain) : plain;
}

}  // namespace

bool is_matrix_product(const std::string& name) {
  return name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm" || name == "aten::baddbmm";
}

at::ArrayRef<const c10::IValue> arguments_of(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  const auto name = function.operator_name();
  const auto handle = name ? c10::Dispatcher::singleton().findSchema(*name) : c10::nullopt;
  if (!handle) return inputs;
  const size_t count = handle->schema().arguments().size();
  return inputs.size() <= count ? inputs : inputs.slice(inputs.size() - count);
}

Operation operation_of(std::string name, std::string overload, at::ArrayRef<const c10::IValue> arguments) {
  Operation operation{std::move(name), std::move(overload), {}, at::kCPU};
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor() && argument.toTensor().defined()) operation.device = argument.toTensor().device().type();
    operation.arguments.push_back(without_numbers(argument));
  }
  return operation;
}

Operation for_images(const Operation& of_two, const Operation& of_three, int64_t images) {
  if (of_two.name != of_three.name || of_two.arguments.size() != of_three.arguments.size()) {
    throw core::Error(core::ErrorKind::bug, format("two passes differ: {} and {}", of_two.name, of_three.name));
  }
  Operation result{of_two.name, of_two.overload, {}, of_two.device};
  for (size_t i = 0; i < of_two.arguments.size(); ++i) {
    result.arguments.push_back(extended(of_two.arguments[i], of_three.arguments[i], images));
  }
  return result;
}

std::string key_of(const std::string& name, at::ArrayRef<const c10::IValue> arguments) {
  std::string key = name;
  for (const c10::IValue& argument : arguments) key += " " + value_text(argument);
  return key;
}

std::string key_of(const Operation& operation) { return key_of(operation.name, at::makeArrayRef(operation.arguments)); }

std::string family_of(const std::string& name, at::ArrayRef<const c10::IValue> arguments) {
  const bool is_product = is_matrix_product(name);
  const size_t weight = name == "aten::convolution" ? 1 : name == "aten::convolution_backward" ? 2 : arguments.size();
  std::string family = name;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_tensor = arguments[i].isTensor() && arguments[i].toTensor().defined();
    if (!is_tensor) {
      family += " " + value_text(arguments[i]);
      continue;
    }
    const at::Tensor& tensor = arguments[i].toTensor();
    if (is_product) {
      family += format(" {}", c10::toString(tensor.scalar_type()));
    } else if (i == weight || tensor.dim() < 2) {
      family += " " + tensor_text(tensor);
    } else {
      family += format(" {}[n,{}]/{}", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes().slice(1), ","),
                       fmt::join(tensor.strides().slice(1), ","));
    }
  }
  return family;
}

std::string family_of(const Operation& operation) {
  return family_of(operation.name, at::makeArrayRef(operation.arguments));
}

std::string text_of(const Operation& operation) {
  std::string text = spoken_name(operation.name);
  const bool is_convolution = operation.name.find("aten::convolution") == 0;
  const bool is_backward = operation.name == "aten::convolution_backward";
  std::vector<std::string> sizes;
  at::Tensor first;
  for (const c10::IValue& argument : operation.arguments) {
    if (!argument.isTensor() || !argument.toTensor().defined()) continue;
    if (!first.defined()) first = argument.toTensor();
    sizes.push_back(sizes_text(argument.toTensor()));
  }
  if (is_convolution && sizes.size() >= (is_backward ? 3 : 2)) {
    const size_t input = is_backward ? 1 : 0;
    text += format(", input {}, weight {}", sizes[input], sizes[input + 1]);
    const c10::IValue& stride = operation.arguments[is_backward ? 4 : 3];
    if (stride.isIntList()) text += format(", stride {}", fmt::join(stride.toIntVector(), "x"));
    const c10::IValue& groups = operation.arguments[is_backward ? 9 : 8];
    if (groups.isInt() && groups.toInt() != 1) text += format(", {} groups", groups.toInt());
  } else {
    text += format(", {}", fmt::join(sizes, " by "));
  }
  if (!first.defined()) return text;
  std::string type = c10::toString(first.scalar_type());
  text += first.scalar_type() == at::kFloat      ? ", float32"
          : first.scalar_type() == at::kBFloat16 ? ", bfloat16"
          : first.scalar_type() == at::kHalf     ? ", float16"
                                                 : ", " + type;
  const bool is_last =
      first.dim() == 4 && !first.is_contiguous() && first.is_contiguous(at::MemoryFormat::ChannelsLast);
  return is_last ? text + ", channels-last" : text;
}

int64_t argument_bytes(const Operation& operation) {
  int64_t bytes = 0;
  for (const c10::IValue& argument : operation.arguments) {
    if (argument.isTensor() && argument.toTensor().defined())
      bytes += static_cast<int64_t>(argument.toTensor().nbytes());
  }
  return bytes;
}

namespace {

at::ScalarType type_of(const Operation& operation) {
  for (const c10::IValue& argument : operation.arguments) {
    if (argument.isTensor() && argument.toTensor().defined()) return argument.toTensor().scalar_type();
  }
  return at::kFloat;
}

}  // namespace

std::string onednn_text() {
  if (!at::globalContext().hasMKLDNN()) return "";
  struct Version {  // the beginning of oneDNN's dnnl_version_t
    int major, minor, patch;
  };
  const auto version = reinterpret_cast<const Version* (*)()>(::dlsym(RTLD_DEFAULT, "dnnl_version"));
  if (version == nullptr) return "oneDNN";  // inside LibTorch
  return core::format("oneDNN {}.{}.{}", version()->major, version()->minor, version()->patch);
}

std::string library_of(const Operation& operation) {
  if (operation.device != at::kCPU) return engine::computing_text(operation.device);
  const bool has_onednn = at::globalContext().hasMKLDNN() && at::globalContext().userEnabledMkldnn();
  const bool is_convolution = operation.name.rfind("aten::convolution", 0) == 0;
  if (is_convolution && has_onednn) return onednn_text();
  if (is_matrix_product(operation.name)) {
    const size_t left =
        operation.name == "aten::mm" || operation.name == "aten::bmm" ? 0 : 1;  // what is added is first
    const at::Tensor a = operation.arguments.at(left).toTensor(), b = operation.arguments.at(left + 1).toTensor();
    if (is_tiny_product(a, b)) return engine::libtorch_text();
    return type_of(operation) == at::kFloat || !has_onednn ? engine::blas_facts().name : onednn_text();
  }
  return engine::libtorch_text();
}

}  // namespace stoker::proof
