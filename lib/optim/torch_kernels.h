// SPDX-License-Identifier: Apache-2.0
// Kernels of LibTorch that work on all tensors at once, and all that differs between its releases here.
// Only this module and tests include this file. Tensors may be on any device that has the kernel; nothing syncs with
// the host.
#pragma once

#include <torch/types.h>

#include <vector>

#include "optim/rules.h"

namespace stoker::optim {

/// One optimizer step's lists; entry i of each belongs together, with one layout.
struct KernelLists {
  std::vector<torch::Tensor> parameters, gradients;
  std::vector<torch::Tensor> first;   ///< momentum or exp_avg; empty without momentum
  std::vector<torch::Tensor> second;  ///< exp_avg_sq or square_avg
};

bool has_fused_sgd();  ///< LibTorch has the kernel for CUDA
/// `found_inf` float32 [1] on the device or undefined; at 1 nothing changes.
void fused_sgd(const KernelLists& lists, const SgdRule& rule, const torch::Tensor& found_inf);
/// `step` float32 [1] on the device: 1 for the first step.
void fused_adam(const KernelLists& lists, const AdamRule& rule, const torch::Tensor& step,
                const torch::Tensor& found_inf);
/// As fused_sgd(), from foreach operations; changes the gradients' contents as well.
void foreach_sgd(const KernelLists& lists, const SgdRule& rule);
/// As fused_adam(), from foreach operations; changes the gradients' contents as well. `step` is 1 for the first step.
void foreach_adam(const KernelLists& lists, const AdamRule& rule, int64_t step);

// Optimizers without kernels of their own: foreach operations on every device. They change the gradients' contents,
// too.

void foreach_rmsprop(const KernelLists& lists, const RmsPropRule& rule);
/// Dozat 2016 as torch.optim.NAdam has it, with its momentum_decay of 0.004; decay is added to the gradient. Where a
/// schedule moves beta1, the product of the momenta is that of the newest.
void foreach_nadam(const KernelLists& lists, const AdamRule& rule, int64_t step);
/// Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2; without `second`.
void foreach_lion(const KernelLists& lists, const AdamRule& rule);
/// You et al. 2020, "Large Batch Optimization for Deep Learning", algorithm 2 with the identity for phi. `adapts`:
/// steps are scaled by the norms of weights and step, which the authors do not do for norms and biases.
void foreach_lamb(const KernelLists& lists, const AdamRule& rule, int64_t step, bool adapts);
/// Jordan et al. 2024: the momentum of a matrix, orthogonalised by five steps of Newton and Schulz; kernels of
/// convolutions are matrices [out, rest]. Steps are as large as AdamW's (Liu et al. 2025, "Muon is Scalable for LLM
/// Training", equation 4), so that both take one learning rate; decay is decoupled. As torch.optim.Muon with
/// adjust_lr_fn="match_rms_adamw", in float32.
void foreach_muon(const KernelLists& lists, const SgdRule& rule);

/// Multiplies all in place by a one-element tensor of the same device.
void multiply_all(const std::vector<torch::Tensor>& tensors, const torch::Tensor& factor);
/// For its lifetime tensors of the CPU take the kernels of devices, too, as far as this LibTorch has them: for tests,
/// which count and compare them.
class DeviceKernelsScope {
 public:
  DeviceKernelsScope();
  ~DeviceKernelsScope();
  DeviceKernelsScope& operator=(DeviceKernelsScope&&) = delete;  // not copied, not moved
};
/// Whether these kernels are for `tensor`: fewer launches; on a CPU one pass over memory is better.
bool takes_device_kernels(const torch::Tensor& tensor);

/// Limits all values to [-limit, limit] in place.
void clamp_all(const std::vector<torch::Tensor>& tensors, double limit);
/// average += share * (value - average) for each pair, in place.
void approach_all(const std::vector<torch::Tensor>& averages, const std::vector<torch::Tensor>& values, double share);
/// With `share` as a one-element float32 tensor on their device.
void approach_all(const std::vector<torch::Tensor>& averages, const std::vector<torch::Tensor>& values,
                  const torch::Tensor& share);

}  // namespace stoker::optim
