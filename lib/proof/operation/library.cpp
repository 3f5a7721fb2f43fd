// SPDX-License-Identifier: Apache-2.0
#include "proof/operation/library.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include "core/format.h"
#include "engine/device/blas.h"
#include "engine/device/device.h"
#include "proof/rules/rules.h"

namespace stoker::proof {
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
