// SPDX-License-Identifier: Apache-2.0
// Networks by name. Parameter and buffer names, shapes and arithmetic are torchvision's, so that a state dict
// moves either way without renaming. Knows nothing of data, optimizers or files.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "config/options.h"

namespace stoker::model {

/// A network that maps images to class scores.
class ImageModel : public torch::nn::Module {
 public:
  /// images float [B, C, H, W] -> logits [B, num_classes]. Any thread; one at a time.
  virtual torch::Tensor forward(torch::Tensor images) = 0;
  /// Name prefix of the classifier's parameters ("fc."): what is replaced when classes differ.
  virtual std::string head_prefix() const = 0;
};

struct ModelSpec {
  std::string name;
  int64_t in_chans = 3;
  int64_t num_classes = 1000;
  int64_t width = 32;  ///< small_cnn: channels of the first stage
  bool zero_init_residual = false;
};

/// Builds and initialises with the global torch generator. Throws Error{config} naming the known models.
std::shared_ptr<ImageModel> make_model(const ModelSpec& spec);
std::vector<std::string> model_names();

/// A named tensor of a model: parameters first, then buffers, in registration order.
struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};
std::vector<NamedTensor> state_of(const torch::nn::Module& module);
int64_t parameter_count(const torch::nn::Module& module);

/// Reorders 4-d parameters in memory to channels-last. Before the first backward pass only.
void to_channels_last(torch::nn::Module& module);

}  // namespace stoker::model
