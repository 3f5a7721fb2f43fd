// SPDX-License-Identifier: Apache-2.0
// A network as a graph of LibTorch's operations, recorded while it computes: what TorchScript files hold, and what
// other formats are translated from.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "model/image_model.h"

namespace stoker::deploy {

/// From the input of the exported network to its output, by way of `model`, for example with a normalisation before it.
using NetworkForward = std::function<torch::Tensor(const torch::Tensor& input)>;

/// Shares its tensors with the network that was traced.
class TracedNetwork {
 public:
  explicit TracedNetwork(torch::jit::Module module) : module_(std::move(module)) {}

  /// input as that which was traced, with any batch -> output. On one thread at a time.
  torch::Tensor forward(const torch::Tensor& input) const;
  /// The graph with all parts of the network inlined. Its first input is the module.
  std::shared_ptr<torch::jit::Graph> graph() const;
  const torch::jit::Module& module() const { return module_; }
  /// The bytes of a TorchScript file, which torch.jit.load() reads in Python and C++. `extra` are files beside the
  /// program in it, by name.
  std::string torchscript(const std::map<std::string, std::string>& extra) const;

 private:
  torch::jit::Module module_;
};

/// Records what `forward` does with `example` [B > 1, ...]. `model` must be in evaluation mode, in float32, on the CPU.
/// Throws Error{config} where the network cannot be traced, or where what was recorded gives other outputs for another
/// batch: then it has decided something by the number of images.
TracedNetwork trace_network(const model::ImageModel& model, const NetworkForward& forward,
                            const torch::Tensor& example);

}  // namespace stoker::deploy
