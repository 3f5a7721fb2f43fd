// SPDX-License-Identifier: Apache-2.0
// Ioffe & Szegedy 2015, "Batch Normalization"; over parts: the mean of all, and Chan's sum of squares, which loses no
// digits where means are large. Sums are doubles.
#include "model/layers/batch_norm.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace stoker::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const SharedBatch*& batch_of_thread() {
  thread_local const SharedBatch* batch = nullptr;
  return batch;
}

/// All but the channels.
std::vector<int64_t> other_dims(const torch::Tensor& x) {
  std::vector<int64_t> dims = {0};
  for (int64_t dim = 2; dim < x.dim(); ++dim) dims.push_back(dim);
  return dims;
}

torch::Tensor by_channel(const torch::Tensor& values, const torch::Tensor& x) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = -1;
  return values.view(shape);
}

/// Numbers of a pass are float32, or doubles.
torch::Tensor exact(const torch::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

/// Sums over one batch, besides tensors that have gradients.
struct Statistics : torch::CustomClassHolder {
  const SharedBatch* batch = nullptr;
  double eps = 0;
  torch::Tensor count, mean,
      squares;  ///< doubles [1], [C], [C]: of the whole batch; squares of what differs from the mean
};

void gather(const torch::Tensor& x, Statistics& statistics) {
  const SharedBatch& batch = *statistics.batch;
  const int64_t channels = x.size(1);
  const auto doubles = x.options().dtype(at::kDouble);
  const torch::Tensor rows = at::zeros({batch.parts, 1 + 2 * channels}, doubles);
  if (batch.has_images) {
    const auto count = static_cast<double>(x.numel() / channels);
    const auto [variance, mean] = at::var_mean(exact(x), other_dims(x), /*unbiased=*/false);
    rows[batch.part].copy_(
        at::cat({at::full({1}, count, doubles), mean.to(at::kDouble), variance.to(at::kDouble) * count}));
  }
  batch.sum(rows);
  const torch::Tensor counts = rows.narrow(1, 0, 1), means = rows.narrow(1, 1, channels);
  statistics.count = counts.sum(0);
  statistics.mean = (counts * means).sum(0) / statistics.count;
  statistics.squares =
      rows.narrow(1, 1 + channels, channels).sum(0) + (counts * (means - statistics.mean).square()).sum(0);
}

class SharedNorm : public torch::autograd::Function<SharedNorm> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const torch::Tensor& bias, const c10::intrusive_ptr<Statistics>& statistics) {
    gather(x, *statistics);
    const torch::Tensor variance = statistics->squares / statistics->count;
    const auto type = exact(x).scalar_type();
    const torch::Tensor mean = statistics->mean.to(type), scale = (variance + statistics->eps).rsqrt().to(type);
    context->save_for_backward({x, weight, mean, scale});
    context->saved_data["statistics"] = c10::IValue::make_capsule(statistics);
    return std::get<0>(at::native_batch_norm(x, weight, bias, mean, variance.to(type), /*training=*/false,
                                             /*momentum=*/0, statistics->eps));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto holder = context->saved_data["statistics"].toCapsule();
    const auto& statistics = *static_cast<Statistics*>(holder.get());
    const variable_list saved = context->get_saved_variables();
    const torch::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &scale = saved[3];
    const torch::Tensor gradient = exact(gradients.at(0)), centred = exact(x) - by_channel(mean, x);
    const torch::Tensor sum = gradient.sum(other_dims(x)), product = (gradient * centred).sum(other_dims(x));
    const torch::Tensor sums = at::cat({sum, product}).to(at::kDouble);
    if (!statistics.batch->has_images) sums.zero_();
    statistics.batch->sum(sums);
    if (!statistics.batch->has_images) {
      return {at::zeros_like(x), at::zeros_like(weight), at::zeros_like(weight), torch::Tensor()};
    }
    const torch::Tensor means = (sums / statistics.count).to(mean.scalar_type());
    const torch::Tensor of_sum = means.narrow(0, 0, x.size(1)), of_product = means.narrow(0, x.size(1), x.size(1));
    const torch::Tensor input =
        (gradient - by_channel(of_sum, x) - centred * by_channel(scale.square() * of_product, x)) *
        by_channel(scale * weight.to(mean.scalar_type()), x);
    return {input.to(x.scalar_type()), (product * scale).to(weight.scalar_type()), sum.to(weight.scalar_type()),
            torch::Tensor()};
  }
};

}  // namespace

SharedBatchScope::SharedBatchScope(const SharedBatch* batch) : outer_(std::exchange(batch_of_thread(), batch)) {}
SharedBatchScope::~SharedBatchScope() { batch_of_thread() = outer_; }

const SharedBatch* shared_batch() { return batch_of_thread(); }

torch::Tensor normalise(torch::nn::BatchNorm2dImpl& norm, const torch::Tensor& x) {
  if (shared_batch() == nullptr || !norm.is_training()) return norm.forward(x);
  const auto statistics = c10::make_intrusive<Statistics>();
  statistics->batch = shared_batch();
  statistics->eps = norm.options.eps();
  const torch::Tensor out = SharedNorm::apply(x, norm.weight, norm.bias, statistics);
  const torch::NoGradGuard no_gradients;
  norm.num_batches_tracked += 1;
  const auto momentum = norm.options.momentum();
  const double share = momentum ? *momentum : 1 / norm.num_batches_tracked.to(at::kDouble).item<double>();
  const torch::Tensor variance = statistics->squares / (statistics->count - 1);
  norm.running_mean.mul_(1 - share).add_(statistics->mean.to(norm.running_mean.scalar_type()), share);
  norm.running_var.mul_(1 - share).add_(variance.to(norm.running_var.scalar_type()), share);
  return out;
}

std::vector<std::shared_ptr<torch::nn::BatchNorm2dImpl>> batch_norms_of(const torch::nn::Module& module) {
  std::vector<std::shared_ptr<torch::nn::BatchNorm2dImpl>> norms;
  for (const auto& part : module.modules(/*include_self=*/false)) {
    if (auto norm = std::dynamic_pointer_cast<torch::nn::BatchNorm2dImpl>(part)) norms.push_back(std::move(norm));
  }
  return norms;
}

}  // namespace stoker::model
