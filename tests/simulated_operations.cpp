// SPDX-License-Identifier: Apache-2.0
// The computation of the simulated device: any operation that LibTorch has for the CPU, by the same kernel, later.
#include "tests/simulated_operations.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/record_function.h>
#include <torch/library.h>
#include <torch/version.h>

#include <algorithm>

#include "tests/simulated_device.h"

namespace stoker::fixtures {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
template <typename T>
using Maybe = std::optional<T>;
#else
template <typename T>
using Maybe = c10::optional<T>;
#endif

#ifndef C10_AS_INTARRAYREF_SLOW
#define C10_AS_INTARRAYREF_SLOW(numbers) c10::asIntArrayRefSlow(numbers)
#endif

using torch::jit::Stack;

/// Numbers that the strides reach.
int64_t extent(at::IntArrayRef sizes, at::IntArrayRef strides) {
  int64_t numbers = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    numbers += (sizes[i] - 1) * strides[i];
  }
  return numbers;
}

torch::Tensor made(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype) {
  const auto type = c10::scalarTypeToTypeMeta(dtype);
  const size_t bytes = static_cast<size_t>(extent(sizes, strides)) * type.itemsize();
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       SimulatedDevice::instance().allocate(bytes), nullptr, false);
  torch::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

torch::Tensor empty_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, Maybe<at::ScalarType> dtype,
                            Maybe<at::Layout>, Maybe<at::Device>, Maybe<bool>) {
  return made(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), dtype.value_or(at::kFloat));
}

torch::Tensor empty(c10::SymIntArrayRef sizes, Maybe<at::ScalarType> dtype, Maybe<at::Layout>, Maybe<at::Device>,
                    Maybe<bool>, Maybe<at::MemoryFormat> format) {
  const at::IntArrayRef size = C10_AS_INTARRAYREF_SLOW(sizes);
  const torch::Tensor like = at::empty(size, at::TensorOptions(), format.value_or(at::MemoryFormat::Contiguous));
  return made(size, like.strides(), dtype.value_or(at::kFloat));
}

torch::Tensor as_strided(const torch::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                         Maybe<c10::SymInt> offset) {
  torch::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::TensorImpl::VIEW, c10::Storage(self.storage()),
                                                                self.key_set(), self.dtype());
  auto* const impl = view.unsafeGetTensorImpl();
  impl->set_storage_offset(offset ? offset->expect_int() : self.storage_offset());
  impl->set_sizes_and_strides(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
  return view;
}

torch::Tensor view(const torch::Tensor& self, c10::SymIntArrayRef size) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

torch::Tensor reshape_alias(const torch::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

bool is_simulated(const torch::Tensor& tensor) {
  return tensor.defined() && tensor.device() == SimulatedDevice::device();
}

/// The same memory as a tensor of the CPU, which does not keep it: neither does a device.
torch::Tensor on_cpu(const torch::Tensor& tensor) {
  auto* const memory = static_cast<char*>(tensor.storage().data_ptr().get()) +
                       static_cast<size_t>(tensor.storage_offset()) * tensor.dtype().itemsize();
  return at::from_blob(memory, tensor.sizes(), tensor.strides(), at::TensorOptions(tensor.scalar_type()));
}

/// Operations of the device are not recorded: no gradients, no observers.
struct OnDevice {
  at::AutoDispatchBelowADInplaceOrView no_gradients;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
  at::DisableRecordFunctionGuard unheard;
};

torch::Tensor& copy(torch::Tensor& self, const torch::Tensor& from, bool non_blocking) {
  SimulatedDevice& device = SimulatedDevice::instance();
  const bool is_waited_for = !non_blocking && (self.is_cpu() || from.is_cpu());
  if (is_waited_for && is_simulated(from)) device.wait_to_read();
  // Page-locked memory of the host is kept until copies are done, as LibTorch keeps it.
  const auto place = [](const torch::Tensor& tensor) { return tensor.is_cpu() ? tensor : on_cpu(tensor); };
  auto run = [to = place(self), source = place(from)]() mutable {
    const OnDevice on_device;
    to.copy_(source);
  };
  if (is_waited_for && is_simulated(from)) {
    run();
    return self;
  }
  device.work(run);
  if (is_waited_for) device.finish_work();
  return self;
}

void record_stream(torch::Tensor& self, c10::Stream stream) { SimulatedDevice::instance().use_on(self, stream.id()); }

using Change = std::function<torch::Tensor(const torch::Tensor&)>;

/// The stack with each tensor, also those in lists, replaced.
Stack changed(const Stack& stack, const Change& change) {
  Stack out;
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) {
      out.emplace_back(change(value.toTensor()));
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(change(tensor));
      out.emplace_back(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<Maybe<at::Tensor>> list;
      for (const Maybe<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor ? Maybe<at::Tensor>(change(*tensor)) : Maybe<at::Tensor>());
      }
      out.emplace_back(list);
    } else if (value.isDevice()) {
      out.emplace_back(at::Device(at::kCPU));
    } else {
      out.push_back(value);
    }
  }
  return out;
}

/// Same shape and strides; indices and labels of 0 are always within bounds.
torch::Tensor zeros_of_shape(const torch::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return at::zeros({extent(tensor.sizes(), tensor.strides())}, at::TensorOptions(tensor.scalar_type()))
      .as_strided(tensor.sizes(), tensor.strides());
}

/// The arguments of a kernel: memory of the device, or the one number that the host gave, as it was then.
torch::Tensor argument_of(const torch::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (is_simulated(tensor)) return on_cpu(tensor);
  TORCH_CHECK(tensor.dim() == 0, "Expected all tensors to be on the same device, but found at least two devices, ",
              SimulatedDevice::device(), " and cpu");
  torch::Tensor number = tensor.clone();
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

/// A result of the shape that the device's memory is for.
torch::Tensor made_like(const torch::Tensor& result) {
  return result.defined() ? made(result.sizes(), result.strides(), result.scalar_type()) : result;
}

/// The argument that each result is, for those that operations write to; -1: its own.
std::vector<int64_t> written_arguments(const c10::FunctionSchema& schema) {
  std::vector<int64_t> written;
  for (const c10::Argument& result : schema.returns()) {
    written.push_back(-1);
    if (!result.alias_info() || !result.alias_info()->isWrite()) continue;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const auto* const alias = schema.arguments()[i].alias_info();
      if (alias && alias->isWrite() && alias->beforeSets() == result.alias_info()->beforeSets()) {
        written.back() = static_cast<int64_t>(i);
      }
    }
    TORCH_CHECK(written.back() >= 0, "the simulated device does not know what ", schema.name(), " writes to");
  }
  return written;
}

bool gives_numbers(const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
    return result.type()->isSubtypeOf(*c10::NumberType::get()) || result.type()->isSubtypeOf(*c10::BoolType::get());
  });
}

void write_results(const Stack& results, const Stack& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].isTensor() && outputs[i].toTensor().defined()) {
      outputs[i].toTensor().copy_(results[i].toTensor());
    } else if (outputs[i].isTensorList()) {
      const auto from = results[i].toTensorVector(), to = outputs[i].toTensorVector();
      for (size_t k = 0; k < to.size(); ++k) to[k].copy_(from[k]);
    }
  }
}

/// An operation with `out` gives it the shape that it takes.
void resize_outputs(const c10::FunctionSchema& schema, const Stack& arguments, const Stack& of_shape) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!schema.arguments()[i].is_out() || !arguments[i].isTensor()) continue;
    const torch::Tensor to = arguments[i].toTensor(), shape = of_shape[i].toTensor();
    if (to.sizes() == shape.sizes()) continue;
    TORCH_CHECK(to.numel() == 0, "the simulated device does not resize what has numbers: ", schema.name());
    const torch::Tensor memory = made_like(shape);
    to.unsafeGetTensorImpl()->set_storage_keep_dtype(memory.storage());
    to.unsafeGetTensorImpl()->set_sizes_and_strides(memory.sizes(), memory.strides());
  }
}

void any_operation(const c10::OperatorHandle& operation, Stack* stack) {
  queue(operation, *stack, [operation](Stack& arguments) { operation.callBoxed(&arguments); });
}

c10::OperatorHandle operation_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
}

// The network's convolutions ask for these two on devices that LibTorch does not know.

void convolution(const c10::OperatorHandle& operation, Stack* stack) {
  queue(operation, *stack, [](Stack& arguments) { operation_named("aten::convolution").callBoxed(&arguments); });
}

void convolution_backward(const c10::OperatorHandle& operation, Stack* stack) {
  queue(operation, *stack, [](Stack& arguments) {
    const c10::List<int64_t> bias_sizes({arguments[2].toTensor().size(0)});
    arguments.insert(arguments.begin() + 3, bias_sizes);
    operation_named("aten::convolution_backward").callBoxed(&arguments);
  });
}

}  // namespace

void queue(const c10::OperatorHandle& operation, Stack& stack, const Compute& compute) {
  const OnDevice on_device;
  const c10::FunctionSchema& schema = operation.schema();
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
  const Stack arguments(first, stack.end());
  stack.erase(first, stack.end());
  const Stack views = changed(arguments, argument_of);
  if (gives_numbers(schema)) {
    SimulatedDevice::instance().wait_to_read();
    Stack numbers = views;
    compute(numbers);
    stack.insert(stack.end(), numbers.begin(), numbers.end());
    return;
  }
  const std::vector<int64_t> written = written_arguments(schema);
  const bool has_out = std::any_of(schema.arguments().begin(), schema.arguments().end(),
                                   [](const c10::Argument& argument) { return argument.is_out(); });
  Stack outputs;
  if (has_out || std::count(written.begin(), written.end(), -1) > 0) {
    const Stack zeros = changed(arguments, zeros_of_shape);
    Stack results = zeros;
    compute(results);
    if (has_out) resize_outputs(schema, arguments, zeros);
    outputs = changed(results, made_like);
  }
  outputs.resize(written.size());
  Stack own = outputs;  // what the operation makes anew
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i] < 0) continue;
    outputs[i] = arguments[static_cast<size_t>(written[i])];
    own[i] = c10::IValue();
  }
  const auto run = [compute, views = has_out ? changed(arguments, argument_of) : views,
                    memory = changed(own, [](const torch::Tensor& tensor) {
                      return tensor.defined() ? on_cpu(tensor) : tensor;
                    })]() {
    const OnDevice computing;
    Stack results = views;
    compute(results);
    write_results(results, memory);
  };
  SimulatedDevice::instance().work(run);
  stack.insert(stack.end(), outputs.begin(), outputs.end());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&any_operation>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("copy_", &copy);
  library.impl("record_stream", &record_stream);
  library.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  library.impl("convolution_backward_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
}

}  // namespace stoker::fixtures
