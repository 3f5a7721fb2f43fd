// SPDX-License-Identifier: Apache-2.0
#include "proof/remedy/operator_replacements.h"

#include <ATen/Parallel.h>
#include <ATen/ops/addmm_cpu_dispatch.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <ATen/ops/convolution_backward_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/convolution_compositeexplicitautograd_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/native_batch_norm_cpu_dispatch.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <torch/library.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "engine/device/without_onednn.h"
#include "proof/operation/operation.h"
#include "proof/remedy/own_batch_norm.h"

namespace stoker::proof {

namespace {

constexpr int64_t kRows = 4;      // whose sums are held at a time
constexpr int64_t kColumns = 64;  // of them, too: 4 x 64 floats stay in registers and the first cache

/// Rows [begin, end) of `result`; all rows lie one behind another in memory.
void product_rows(const float* left, const float* right, float* result, int64_t terms, int64_t columns, int64_t begin,
                  int64_t end) {
  for (int64_t row = begin; row < end; row += kRows) {
    const int64_t rows = std::min(kRows, end - row);
    for (int64_t column = 0; column < columns; column += kColumns) {
      const int64_t width = std::min(kColumns, columns - column);
      float sums[kRows][kColumns] = {};
      for (int64_t k = 0; k < terms; ++k) {
        const float* const factors = right + k * columns + column;
        for (int64_t i = 0; i < rows; ++i) {
          const float factor = left[(row + i) * terms + k];
          for (int64_t j = 0; j < width; ++j) sums[i][j] += factor * factors[j];
        }
      }
      for (int64_t i = 0; i < rows; ++i) std::copy_n(sums[i], width, result + (row + i) * columns + column);
    }
  }
}

}  // namespace

at::Tensor own_product(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor a = left.to(at::kFloat).contiguous(), b = right.to(at::kFloat).contiguous();
  const bool is_batch = left.dim() == 3;
  const int64_t batch = is_batch ? left.size(0) : 1, rows = left.size(-2), terms = left.size(-1),
                columns = right.size(-1);
  at::Tensor result =
      is_batch ? at::empty({batch, rows, columns}, a.options()) : at::empty({rows, columns}, a.options());
  const float *const a_data = a.data_ptr<float>(), *const b_data = b.data_ptr<float>();
  float* const data = result.data_ptr<float>();
  const int64_t blocks = (rows + kRows - 1) / kRows;
  at::parallel_for(0, batch * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t matrix = i / blocks, row = i % blocks * kRows;
      product_rows(a_data + matrix * rows * terms, b_data + matrix * terms * columns, data + matrix * rows * columns,
                   terms, columns, row, std::min(row + kRows, rows));
    }
  });
  return result.to(left.scalar_type());
}

namespace {

using torch::jit::Stack;

// State of LibTorch's kernels, which are plain functions. Never freed: other threads may be in it at the end.
const std::map<std::string, Alternative>* replaced_ways = nullptr;

bool is_way(Alternative way, const std::string& name, const Stack& arguments) {
  const auto found = replaced_ways->find(family_of(name, at::makeArrayRef(arguments)));
  return found != replaced_ways->end() && found->second == way;
}

/// The arguments of a call, and its results in their place.
class Call {
 public:
  Call(const c10::OperatorHandle& handle, Stack* stack) : stack_(*stack) {
    const size_t count = handle.schema().arguments().size();
    arguments_.assign(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
    stack->erase(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
    name_ = handle.operator_name().name;
  }

  bool is(Alternative way) const { return is_way(way, name_, arguments_); }
  at::Tensor tensor(size_t i) const { return arguments_.at(i).toTensor(); }
  c10::optional<at::Tensor> optional_tensor(size_t i) const {
    return arguments_.at(i).isTensor() ? c10::optional<at::Tensor>(tensor(i)) : c10::nullopt;
  }
  std::vector<int64_t> integers(size_t i) const { return arguments_.at(i).toIntVector(); }
  int64_t integer(size_t i) const { return arguments_.at(i).toInt(); }
  bool flag(size_t i) const { return arguments_.at(i).toBool(); }
  at::Scalar scalar(size_t i) const { return arguments_.at(i).toScalar(); }
  const c10::IValue& value(size_t i) const { return arguments_.at(i); }
  void give(const at::Tensor& result) { stack_.emplace_back(result); }

 private:
  Stack& stack_;
  Stack arguments_;
  std::string name_;
};

/// Every `stride`th row and column, in the layout that `x` has.
at::Tensor sliced(const at::Tensor& x, const std::vector<int64_t>& stride) {
  at::Tensor part = x;
  for (size_t i = 0; i < stride.size(); ++i) {
    part = part.slice(static_cast<int64_t>(i) + 2, c10::nullopt, c10::nullopt, stride[i]);
  }
  return part.contiguous(x.suggest_memory_format());
}

at::Tensor in_float32(const at::Tensor& tensor) { return tensor.defined() ? tensor.to(at::kFloat) : tensor; }

at::Tensor rounded_as(const at::Tensor& result, const at::Tensor& like) {
  return result.defined() ? result.to(like.scalar_type()) : result;
}

bool can_be_sliced(const at::Tensor& weight, const std::vector<int64_t>& padding, bool transposed) {
  bool is_point = !transposed;
  for (int64_t i = 2; i < weight.dim(); ++i) is_point = is_point && weight.size(i) == 1;
  for (const int64_t pixels : padding) is_point = is_point && pixels == 0;
  return is_point;
}

// convolution(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups)
void convolution(const c10::OperatorHandle& handle, Stack* stack) {
  Call call(handle, stack);
  at::Tensor input = call.tensor(0);
  std::vector<int64_t> stride = call.integers(3);
  if (call.is(Alternative::sliced) && can_be_sliced(call.tensor(1), call.integers(4), call.flag(6))) {
    input = sliced(input, stride);
    stride.assign(stride.size(), 1);
  }
  const auto compute = [&](const at::Tensor& x, const at::Tensor& weight, const c10::optional<at::Tensor>& bias) {
    return at::compositeexplicitautograd::convolution(x, weight, bias, stride, call.integers(4), call.integers(5),
                                                      call.flag(6), call.integers(7), call.integer(8));
  };
  if (!call.is(Alternative::in_float32)) return call.give(compute(input, call.tensor(1), call.optional_tensor(2)));
  const engine::WithoutOnednn none;
  c10::optional<at::Tensor> bias = call.optional_tensor(2);
  if (bias) bias = in_float32(*bias);
  call.give(rounded_as(compute(in_float32(input), in_float32(call.tensor(1)), bias), input));
}

// convolution_backward(grad_output, input, weight, bias_sizes?, stride, padding, dilation, transposed, output_padding,
//                      groups, output_mask)
void convolution_backward(const c10::OperatorHandle& handle, Stack* stack) {
  Call call(handle, stack);
  const at::Tensor whole = call.tensor(1);
  at::Tensor input = whole;
  const std::vector<int64_t> given = call.integers(4);
  std::vector<int64_t> stride = given;
  const bool is_sliced = call.is(Alternative::sliced) && can_be_sliced(call.tensor(2), call.integers(5), call.flag(7));
  if (is_sliced) {
    input = sliced(input, stride);
    stride.assign(stride.size(), 1);
  }
  const auto mask = call.value(10).toBoolList();
  const std::array<bool, 3> wanted = {mask.get(0), mask.get(1), mask.get(2)};
  std::vector<int64_t> bias;
  at::OptionalIntArrayRef bias_sizes;
  if (!call.value(3).isNone()) {
    bias = call.integers(3);
    bias_sizes = at::OptionalIntArrayRef(bias);
  }
  const auto compute = [&](const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight) {
    return at::compositeexplicitautograd::convolution_backward(gradient, x, weight, bias_sizes, stride,
                                                               call.integers(5), call.integers(6), call.flag(7),
                                                               call.integers(8), call.integer(9), wanted);
  };
  if (call.is(Alternative::in_float32)) {
    const engine::WithoutOnednn none;
    const auto [of_input, of_weight, of_bias] =
        compute(in_float32(call.tensor(0)), in_float32(input), in_float32(call.tensor(2)));
    for (const at::Tensor& gradient : {of_input, of_weight, of_bias}) call.give(rounded_as(gradient, input));
    return;
  }
  auto [input_gradient, weight_gradient, bias_gradient] = compute(call.tensor(0), input, call.tensor(2));
  if (is_sliced && wanted[0]) {
    at::Tensor spread = at::zeros_like(whole), part = spread;
    for (size_t i = 0; i < given.size(); ++i) {
      part = part.slice(static_cast<int64_t>(i) + 2, c10::nullopt, c10::nullopt, given[i]);
    }
    part.copy_(input_gradient);
    input_gradient = spread;
  }
  call.give(input_gradient);
  call.give(weight_gradient);
  call.give(bias_gradient);
}

// mm(self, mat2)
void mm(const c10::OperatorHandle& handle, Stack* stack) {
  Call call(handle, stack);
  call.give(call.is(Alternative::own_product) ? own_product(call.tensor(0), call.tensor(1))
                                              : at::cpu::mm(call.tensor(0), call.tensor(1)));
}

void bmm(const c10::OperatorHandle& handle, Stack* stack) {
  Call call(handle, stack);
  call.give(call.is(Alternative::own_product) ? own_product(call.tensor(0), call.tensor(1))
                                              : at::cpu::bmm(call.tensor(0), call.tensor(1)));
}

/// beta * added + alpha * left right, rounded once.
at::Tensor own_sum(const Call& call) {
  const at::Tensor added = call.tensor(0);
  const at::Tensor product = own_product(call.tensor(1).to(at::kFloat), call.tensor(2)).mul_(call.scalar(4));
  return (added.to(at::kFloat) * call.scalar(3) + product).to(added.scalar_type());
}

// addmm(self, mat1, mat2, beta, alpha)
void addmm(const c10::OperatorHandle& handle, Stack* stack) {
  Call call(handle, stack);
  call.give(call.is(Alternative::own_product)
                ? own_sum(call)
                : at::cpu::addmm(call.tensor(0), call.tensor(1), call.tensor(2), call.scalar(3), call.scalar(4)));
}

void baddbmm(const c10::OperatorHandle& handle, Stack* stack) {
  Call call(handle, stack);
  call.give(call.is(Alternative::own_product)
                ? own_sum(call)
                : at::cpu::baddbmm(call.tensor(0), call.tensor(1), call.tensor(2), call.scalar(3), call.scalar(4)));
}

// native_batch_norm(input, weight?, bias?, running_mean?, running_var?, training, momentum, eps)
void batch_norm_in_training(const c10::OperatorHandle& handle, Stack* stack) {
  Call call(handle, stack);
  const bool is_own = call.is(Alternative::own_sums) && call.flag(5);
  const auto weight = call.optional_tensor(1), bias = call.optional_tensor(2), mean = call.optional_tensor(3),
             variance = call.optional_tensor(4);
  const double momentum = call.scalar(6).toDouble(), eps = call.scalar(7).toDouble();
  const auto [output, of_mean, of_deviation] =
      is_own ? own_batch_norm(call.tensor(0), weight, bias, mean, variance, momentum, eps)
             : at::cpu::native_batch_norm(call.tensor(0), weight, bias, mean, variance, call.flag(5), momentum, eps);
  for (const at::Tensor& result : {output, of_mean, of_deviation}) call.give(result);
}

/// LibTorch warns of kernels that are replaced, which is what is wanted here.
class NoWarnings : public c10::WarningHandler {
 public:
#if TORCH_VERSION_MAJOR >= 2
  void process(const c10::Warning& /*warning*/) override {}
  NoWarnings() : before_(c10::WarningUtils::get_warning_handler()) { c10::WarningUtils::set_warning_handler(this); }
  ~NoWarnings() override { c10::WarningUtils::set_warning_handler(before_); }
#else
  void process(const c10::SourceLocation& /*place*/, const std::string& /*text*/, const bool /*verbatim*/) override {}
  NoWarnings() : before_(c10::Warning::get_warning_handler()) { c10::Warning::set_warning_handler(this); }
  ~NoWarnings() override { c10::Warning::set_warning_handler(before_); }
#endif
  NoWarnings& operator=(NoWarnings&&) = delete;  // not copied, not moved

 private:
  c10::WarningHandler* before_;
};

}  // namespace

void replace_operators(const std::map<std::string, Alternative>& ways) {
  replaced_ways = new std::map<std::string, Alternative>(ways);
  static torch::Library* replaced = nullptr;
  if (replaced != nullptr) return;
  bool is_needed = false;
  for (const auto& [key, way] : ways) is_needed = is_needed || way != Alternative::without_onednn;
  if (!is_needed) return;
  const NoWarnings quiet;
  replaced = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  replaced->impl("convolution", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  replaced->impl("convolution_backward", torch::CppFunction::makeFromBoxedFunction<&convolution_backward>());
  replaced->impl("native_batch_norm", torch::CppFunction::makeFromBoxedFunction<&batch_norm_in_training>());
  replaced->impl("mm", torch::CppFunction::makeFromBoxedFunction<&mm>());
  replaced->impl("bmm", torch::CppFunction::makeFromBoxedFunction<&bmm>());
  replaced->impl("addmm", torch::CppFunction::makeFromBoxedFunction<&addmm>());
  replaced->impl("baddbmm", torch::CppFunction::makeFromBoxedFunction<&baddbmm>());
}

}  // namespace stoker::proof
