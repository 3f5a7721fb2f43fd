// SPDX-License-Identifier: Apache-2.0
// Low-rank fine-tuning: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2022. A linear layer with
// frozen weights W learns two small matrices beside them and computes with W + 2 B A: alpha is twice the rank.
#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/image_model.h"

namespace stoker::model {

/// The matrices of one layer, or none.
class LowRank {
 public:
  /// Registers them in `owner` as PREFIXlora_A and PREFIXlora_B beside PREFIXweight. A is drawn from the global torch
  /// generator as the weights of a linear layer are, B is 0.
  void add_to(torch::nn::Module& owner, const std::string& prefix, const torch::Tensor& weight, int64_t rank);
  /// x [..., in] -> [..., out]. In training A and B see `x` by themselves, and W needs no gradient; else W + 2 B A is
  /// computed first, bit-identical to merged().
  torch::Tensor apply(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                      bool trains) const;

 private:
  torch::Tensor a_, b_;  // [rank, in], [out, rank]; undefined: none
};

/// A layer that can have them.
class LowRankLayer {
 public:
  virtual ~LowRankLayer() = default;
  virtual void add_low_rank(int64_t rank) = 0;
};

/// torch::nn::Linear that can.
class AdaptableLinearImpl : public torch::nn::LinearImpl, public LowRankLayer {
 public:
  using torch::nn::LinearImpl::LinearImpl;
  torch::Tensor forward(const torch::Tensor& x) { return with_bias(x, bias); }
  /// With another bias than its own.
  torch::Tensor with_bias(const torch::Tensor& x, const torch::Tensor& other) {
    return low_rank_.apply(x, weight, other, is_training());
  }
  void add_low_rank(int64_t rank) override { low_rank_.add_to(*this, "", weight, rank); }

 private:
  LowRank low_rank_;
};
TORCH_MODULE(AdaptableLinear);

/// Every layer that can learns at this rank; all other parameters but those of the classifier are frozen. Throws
/// Error{config} where none can.
void add_low_rank(ImageModel& model, int64_t rank, const std::string& name);

/// Tensors of a file in which W + 2 B A stands for W, A and B: those of a network without low-rank layers. What does
/// not fit together stays as it is.
std::vector<NamedTensor> merged(std::vector<NamedTensor> tensors);

}  // namespace stoker::model
