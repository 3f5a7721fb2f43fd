// SPDX-License-Identifier: Apache-2.0
#include "model/layers/norm_relu.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/record_function.h>
#include <c10/core/MemoryFormat.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "kernels/cpu.h"
#include "kernels/norm_relu_kernels.h"
#include "model/layers/torch_threads.h"

namespace stoker::model {
namespace {

using kernels::ChannelMoments;
using kernels::NormShape;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

NormShape shape_of(const torch::Tensor& x) { return {x.size(0) * x.size(2) * x.size(3), x.size(1)}; }

/// What the kernels know: bfloat16 as its bits, or float.
template <typename T>
T* values(const torch::Tensor& tensor) {
  return tensor.defined() && tensor.numel() > 0 ? static_cast<T*>(tensor.data_ptr()) : nullptr;
}

template <typename Work>
void by_type(const torch::Tensor& x, const Work& work) {
  x.scalar_type() == at::kFloat ? work(float{}) : work(uint16_t{});
}

torch::Tensor channel_values(int64_t channels) { return at::empty({channels}, at::kFloat); }

/// What autograd does not see: where the running statistics are, and how fast they move.
struct Running {
  torch::Tensor mean, variance;
  double momentum = 0, eps = 0;

  void move_to(const ChannelMoments& moments, int64_t rows) const {
    float* const old_mean = mean.data_ptr<float>();
    float* const old_variance = variance.data_ptr<float>();
    const double unbiased = static_cast<double>(rows) / static_cast<double>(rows - 1);
    for (size_t c = 0; c < moments.mean.size(); ++c) {
      old_mean[c] = static_cast<float>((1 - momentum) * old_mean[c] + momentum * moments.mean[c]);
      old_variance[c] =
          static_cast<float>((1 - momentum) * old_variance[c] + momentum * unbiased * moments.variance[c]);
    }
  }
};

/// y = relu(weight * (x - mean) / sqrt(variance + eps) + bias + added): Ioffe and Szegedy 2015, as torch.nn.BatchNorm2d
/// has it.
class NormAddRelu : public torch::autograd::Function<NormAddRelu> {
 public:
  /// `added` without values: nothing is added. Autograd knows no tensors that are not there.
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const torch::Tensor& bias, const torch::Tensor& added, const Running& running) {
    RECORD_USER_SCOPE("stoker::NormAddRelu");  // for profilers
    const NormShape shape = shape_of(x);
    const torch::Tensor y = at::empty_like(x), mean = channel_values(shape.channels),
                        inverse = channel_values(shape.channels);
    const torch::Tensor scale = channel_values(shape.channels), shift = channel_values(shape.channels);
    by_type(x, [&](auto type) {
      using T = decltype(type);
      const ChannelMoments moments = kernels::channel_moments(values<const T>(x), shape, on_torch_threads);
      running.move_to(moments, shape.rows);
      const float *const weights = values<float>(weight), *const biases = values<float>(bias);
      float *const means = values<float>(mean), *const inverses = values<float>(inverse);
      float *const scales = values<float>(scale), *const shifts = values<float>(shift);
      for (int64_t c = 0; c < shape.channels; ++c) {
        const double inverse_deviation = 1 / std::sqrt(moments.variance[c] + running.eps);
        const double factor = weights[c] * inverse_deviation;
        means[c] = static_cast<float>(moments.mean[c]);
        inverses[c] = static_cast<float>(inverse_deviation);
        scales[c] = static_cast<float>(factor);
        shifts[c] = static_cast<float>(biases[c] - moments.mean[c] * factor);
      }
      kernels::scale_add_relu(values<const T>(x), values<const T>(added), shape, scales, shifts, values<T>(y),
                              on_torch_threads);
    });
    context->saved_data["added"] = added.numel() > 0;
    context->save_for_backward({x, weight, mean, inverse, y});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse = saved[3], &y = saved[4];
    const torch::Tensor dy = gradients.at(0).contiguous(c10::MemoryFormat::ChannelsLast);
    const NormShape shape = shape_of(x);
    const torch::Tensor dx = at::empty_like(x), weight_gradient = at::empty_like(weight),
                        bias_gradient = at::empty_like(weight);
    const torch::Tensor added_gradient = context->saved_data["added"].toBool() ? at::empty_like(x) : torch::Tensor();
    const torch::Tensor a = channel_values(shape.channels), b = channel_values(shape.channels),
                        d = channel_values(shape.channels);
    by_type(x, [&](auto type) {
      using T = decltype(type);
      const T *const dys = values<const T>(dy), *const ys = values<const T>(y), *const xs = values<const T>(x);
      const float *const means = values<float>(mean), *const inverses = values<float>(inverse);
      const float* const weights = values<float>(weight);
      float *const weight_gradients = values<float>(weight_gradient), *const bias_gradients =
                                                                          values<float>(bias_gradient);
      float *const as = values<float>(a), *const bs = values<float>(b), *const ds = values<float>(d);
      const kernels::ChannelSums sums = kernels::relu_gradient_sums(dys, ys, xs, shape, means, on_torch_threads);
      const auto rows = static_cast<double>(shape.rows);
      for (int64_t c = 0; c < shape.channels; ++c) {
        const double deviation = inverses[c], factor = weights[c] * deviation;
        bias_gradients[c] = static_cast<float>(sums.gradient[c]);
        weight_gradients[c] = static_cast<float>(sums.grad_times_centered[c] * deviation);
        as[c] = static_cast<float>(factor);
        bs[c] = static_cast<float>(-factor * deviation * deviation * sums.grad_times_centered[c] / rows);
        ds[c] = static_cast<float>(-factor * sums.gradient[c] / rows);
      }
      kernels::norm_relu_gradients(dys, ys, xs, shape, means, as, bs, ds, values<T>(dx), values<T>(added_gradient),
                                   on_torch_threads);
    });
    return {dx, weight_gradient, bias_gradient, added_gradient, torch::Tensor()};
  }
};

bool has_known_layout(const torch::Tensor& x, at::ScalarType type) {
  return x.device().is_cpu() && x.dim() == 4 && x.scalar_type() == type &&
         x.is_contiguous(c10::MemoryFormat::ChannelsLast);
}

/// Whether the kernels can do it; LibTorch says what is wrong with the rest, or does it.
bool is_for_kernels(const torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x, const torch::Tensor& added) {
  const at::ScalarType type = x.scalar_type();
  return kernels::has_norm_relu() && norm.is_training() && norm.running_mean.defined() && norm.weight.defined() &&
         norm.options.momentum().has_value() && norm.weight.scalar_type() == at::kFloat &&
         norm.weight.device().is_cpu() && (type == at::kFloat || type == at::kBFloat16) && has_known_layout(x, type) &&
         x.size(1) % kernels::kNormLanes == 0 && x.size(1) == norm.weight.size(0) && x.numel() > x.size(1) &&
         (!added.defined() || (has_known_layout(added, type) && added.sizes() == x.sizes()));
}

torch::Tensor norm_maybe_add_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& x, const torch::Tensor& added) {
  if (!is_for_kernels(*norm, x, added)) {
    torch::Tensor y = norm(x);
    return (added.defined() ? y.add_(added) : y).relu_();
  }
  norm->num_batches_tracked += 1;
  return NormAddRelu::apply(
      x, norm->weight, norm->bias, added.defined() ? added : at::empty({0}, x.options()),
      Running{norm->running_mean, norm->running_var, *norm->options.momentum(), norm->options.eps()});
}

}  // namespace

torch::Tensor norm_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& x) {
  return norm_maybe_add_relu(norm, x, torch::Tensor());
}

torch::Tensor norm_add_relu(torch::nn::BatchNorm2d& norm, const torch::Tensor& x, const torch::Tensor& added) {
  return norm_maybe_add_relu(norm, x, added);
}

}  // namespace stoker::model
