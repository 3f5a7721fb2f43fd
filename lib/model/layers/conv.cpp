// SPDX-License-Identifier: Apache-2.0
#include "model/layers/conv.h"

#include <ATen/Parallel.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/silu.h>
#include <c10/core/MemoryFormat.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>
#include <variant>

#include "kernels/conv_weight_gradient.h"
#include "kernels/cpu.h"

namespace stoker::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void on_torch_threads(int64_t count, int64_t grain, const kernels::RangeWork& work) {
  at::parallel_for(0, count, grain, work);
}

const uint16_t* bits(const torch::Tensor& bfloat16s) { return static_cast<const uint16_t*>(bfloat16s.data_ptr()); }

kernels::ConvShape2d shape_of(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& y,
                              int64_t stride, int64_t padding) {
  return {x.size(0), x.size(1), x.size(2), x.size(3), y.size(1), y.size(2), y.size(3), weight.size(2), stride, padding};
}

/// Convolution without bias, in bfloat16, of weights that stay float.
class Bfloat16Conv : public torch::autograd::Function<Bfloat16Conv> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               int64_t stride, int64_t padding) {
    const torch::Tensor rounded = weight.to(x.scalar_type());
    context->save_for_backward({x, rounded});
    context->saved_data["stride"] = stride;
    context->saved_data["padding"] = padding;
    return at::conv2d(x, rounded, {}, {stride, stride}, {padding, padding});
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1];
    const int64_t stride = context->saved_data["stride"].toInt(), padding = context->saved_data["padding"].toInt();
    const torch::Tensor dy = gradients.at(0).contiguous(c10::MemoryFormat::ChannelsLast);
    torch::Tensor x_gradient;
    if (context->needs_input_grad(0)) {
      x_gradient = std::get<0>(
          at::convolution_backward(dy, x, weight, c10::nullopt, {stride, stride}, {padding, padding}, {1, 1},
                                   /*transposed=*/false, {0, 0}, /*groups=*/1, {true, false, false}));
    }
    const torch::Tensor weight_gradient = at::empty_like(weight, weight.options().dtype(at::kFloat));
    kernels::conv_weight_gradient(
        shape_of(x, weight, dy, stride, padding), bits(x), bits(dy),
        {weight_gradient.stride(0), weight_gradient.stride(1), weight_gradient.stride(2), weight_gradient.stride(3)},
        weight_gradient.data_ptr<float>(), on_torch_threads);
    return {x_gradient, weight_gradient, torch::Tensor(), torch::Tensor()};
  }
};

using std::get_if;  // up to 1.13, LibTorch has a variant of its own, with one of its own

/// Pixels on each side; nullptr where a name stands for them.
const torch::ExpandingArray<2>* padding_of(const torch::nn::Conv2dImpl& conv) {
  return get_if<torch::ExpandingArray<2>>(&conv.options.padding());
}

bool is_square(const torch::ExpandingArray<2>& sides) { return sides->at(0) == sides->at(1); }

/// Without bias, one group, square, no dilation, zeros around the image: the shapes that our kernels support.
bool is_plain(const torch::nn::Conv2dImpl& conv) {
  const auto& options = conv.options;
  const torch::ExpandingArray<2>* const padding = padding_of(conv);
  return !conv.bias.defined() && options.groups() == 1 &&
         get_if<torch::enumtype::kZeros>(&options.padding_mode()) != nullptr && padding != nullptr &&
         is_square(*padding) && is_square(options.stride()) && is_square(options.kernel_size()) &&
         options.dilation()->at(0) == 1 && options.dilation()->at(1) == 1 && conv.weight.scalar_type() == at::kFloat;
}

/// Whether the kernels can do it and are faster: each thread takes some of the input's channels, so there must be
/// enough.
bool is_for_kernels(const torch::nn::Conv2dImpl& conv, const torch::Tensor& x) {
  const int64_t parts = conv.weight.size(1) / kernels::kConvLanes, threads = at::get_num_threads();
  return torch::GradMode::is_enabled() && conv.weight.requires_grad() && kernels::has_conv_weight_gradient() &&
         x.device().is_cpu() && x.dim() == 4 && x.scalar_type() == at::kBFloat16 &&
         x.is_contiguous(c10::MemoryFormat::ChannelsLast) && is_plain(conv) && x.size(1) == conv.weight.size(1) &&
         x.size(1) % kernels::kConvLanes == 0 && conv.weight.size(0) % kernels::kConvLanes == 0 && x.numel() > 0 &&
         (parts % threads == 0 || parts >= 4 * threads);
}

}  // namespace

torch::Tensor convolve(torch::nn::Conv2d& conv, const torch::Tensor& x) {
  if (!is_for_kernels(*conv, x)) return conv(x);
  return Bfloat16Conv::apply(x, conv->weight, conv->options.stride()->at(0), (*padding_of(*conv))->at(0));
}

torch::nn::Conv2d unbiased_conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups) {
  const int64_t padding = (kernel - 1) / 2;
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(padding).groups(groups).bias(false));
}

torch::Tensor activate(torch::Tensor x, Activation activation) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x.relu_();
    case Activation::relu6: return at::hardtanh_(x, 0, 6);
    case Activation::silu: return at::silu(x);  // not in place: its gradient needs x, which would be copied first
    case Activation::hardswish: return at::hardswish(x);
  }
  return x;
}

ConvNormAct::ConvNormAct(const ConvShape& shape, const NormSettings& norm, Activation activation)
    : activation_(activation) {
  conv_ = register_module("0", unbiased_conv(shape.in, shape.out, shape.kernel, shape.stride, shape.groups));
  norm_ = register_module(
      "1", torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(shape.out).eps(norm.eps).momentum(norm.momentum)));
}

torch::Tensor ConvNormAct::forward(const torch::Tensor& x) {
  const int64_t stride = conv_->options.stride()->at(0), padding = (conv_->options.kernel_size()->at(0) - 1) / 2;
  const bool halves = has_same_padding_ && stride == 2 && padding > 0, is_even_row = halves && x.size(2) % 2 == 0,
             is_even_column = halves && x.size(3) % 2 == 0;
  if (!is_even_row && !is_even_column) return activate(normalise(*norm_, convolve(conv_, x)), activation_);
  // LibTorch pads both ends alike: with a pixel more on both, what is wanted begins one place later.
  torch::Tensor y =
      at::conv2d(x, conv_->weight, {}, {stride, stride}, {padding + is_even_row, padding + is_even_column},
                 /*dilation=*/1, conv_->options.groups());
  if (is_even_row) y = y.narrow(2, 1, x.size(2) / 2);
  if (is_even_column) y = y.narrow(3, 1, x.size(3) / 2);
  return activate(normalise(*norm_, y), activation_);
}

SqueezeExcite::SqueezeExcite(int64_t channels, int64_t squeezed, Activation inner, Gate gate)
    : inner_(inner), gate_(gate) {
  fc1_ = register_module("fc1", torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, squeezed, 1)));
  fc2_ = register_module("fc2", torch::nn::Conv2d(torch::nn::Conv2dOptions(squeezed, channels, 1)));
}

torch::Tensor SqueezeExcite::forward(const torch::Tensor& x) {
  torch::Tensor scale = at::adaptive_avg_pool2d(x, {1, 1});  // [B, C, 1, 1]
  scale = fc2_(activate(fc1_(scale), inner_));
  return x * (gate_ == Gate::sigmoid ? scale.sigmoid() : at::hardsigmoid(scale));
}

}  // namespace stoker::model
