// SPDX-License-Identifier: Apache-2.0
// The interface of every network, its specification, its tensors by name. Parameter and buffer names, shapes
// and arithmetic are torchvision's, so that a state dict moves either way without renaming.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/options.h"

namespace stoker::model {

/// Runs a part of a network: `forward` maps `input` [B, ...] through `stage`. What is put here may drop the
/// stage's inner activations and compute them again later.
using StageForward = std::function<torch::Tensor(const torch::Tensor& input)>;
using StageRunner =
    std::function<torch::Tensor(torch::nn::Module& stage, const StageForward& forward, const torch::Tensor& input)>;

/// A network that maps images to class scores.
class ImageModel : public torch::nn::Module {
 public:
  /// images float [B, C, H, W] -> logits [B, num_classes]. Any thread; one at a time.
  virtual torch::Tensor forward(torch::Tensor images) = 0;
  /// Name prefix of the classifier's parameters ("fc."): what is replaced when classes differ.
  virtual std::string head_prefix() const = 0;
  /// images [B, C, H, W] -> the last feature map before pooling [B, feature_channels(), H', W']. Throws
  /// Error{config} for networks without one.
  virtual torch::Tensor features(torch::Tensor images);
  virtual int64_t feature_channels() const { return 0; }
  /// The networks of single images that this one is built on.
  virtual std::vector<ImageModel*> backbones() { return {}; }

  /// From now on every stage runs through `runner`; empty: directly.
  virtual void set_stage_runner(StageRunner runner) { stage_runner_ = std::move(runner); }
  /// These parts, such as frozen batch norms, stay in evaluation mode while the rest trains.
  void keep_in_evaluation(std::vector<std::shared_ptr<torch::nn::Module>> parts) { still_ = std::move(parts); }
  void train(bool on = true) override;

  /// The layers that --layer-decay counts, from input to output, the classifier last. As timm's group_matcher() has
  /// them: the stem, then each block; a downsampling belongs to the block after it, a last norm or convolution to the
  /// block before it (EfficientNet, ViT) or to the classifier (ConvNeXt).
  int64_t layer_count() const { return static_cast<int64_t>(layers_.size()); }
  /// The layer in [0, layer_count()) of a parameter by its full name.
  int64_t layer_of(const std::string& parameter) const;
  /// Whether a parameter, by its full name, belongs to what may have learned before: not to the classifier or what else
  /// follows the backbone. --backbone-lr and --freeze-for are about these.
  bool is_in_backbone(const std::string& parameter) const;
  /// How the names of a layer's parameters begin.
  const std::vector<std::string>& layer_prefixes(int64_t layer) const { return layers_.at(static_cast<size_t>(layer)); }

  /// Whether weight decay reaches a parameter by its full name. As in timm: not those in no_weight_decay(). Parameters
  /// of one dimension (biases, norms) are left to the optimizer.
  bool decays(const std::string& parameter) const;
  /// Parts of the names of parameters that weight decay leaves alone although they have more than one dimension:
  /// "layer_scale", for example, or a module around them.
  virtual std::vector<std::string> no_weight_decay() const { return {}; }
  /// Rows and columns of the patches that have position embeddings; zeros: there are none.
  virtual std::array<int64_t, 2> position_grid() const { return {0, 0}; }

 protected:
  /// The next layer: parameters whose names begin with one of `prefixes`. In order, while constructing.
  void add_layer(std::vector<std::string> prefixes) { layers_.push_back(std::move(prefixes)); }
  /// Parameters whose names begin with `prefix` join the layer that was added last.
  void add_to_last_layer(std::string prefix) { layers_.back().push_back(std::move(prefix)); }
  /// How many of the last layers follow the backbone.
  void set_layers_of_head(int64_t count) { layers_of_head_ = count; }
  /// forward() calls each of its stages through this.
  template <typename Part>
  torch::Tensor run_stage(Part& stage, const torch::Tensor& x) {
    if (!stage_runner_) return stage.forward(x);
    return stage_runner_(
        stage, [&stage](const torch::Tensor& input) { return stage.forward(input); }, x);
  }

 private:
  StageRunner stage_runner_;
  std::vector<std::shared_ptr<torch::nn::Module>> still_;
  std::vector<std::vector<std::string>> layers_;
  int64_t layers_of_head_ = 1;
};

struct ModelSpec {
  std::string name;
  int64_t in_chans = 3;
  int64_t num_classes = 1000;
  config::ImageSize img_size{224, 224};      ///< only networks with position embeddings are made for one size
  int64_t width = 32;                        ///< small_cnn, tiny_cnn, resnet9: channels of the first stage
  std::string backbone = "efficientnet_b0";  ///< two_stream_convlstm: the network that sees single frames
  int64_t lstm_channels = 64;                ///< two_stream_convlstm: channels of each ConvLSTM
  double drop_rate = 0;                      ///< dropout before the classifier, in [0, 1)
  double drop_path_rate = 0;                 ///< stochastic depth of the last residual branch, in [0, 1)
  bool zero_init_residual = false;
  bool same_padding = false;  ///< pads as TensorFlow does; networks of ConvNormAct alone
};

/// A named tensor of a model: parameters first, then buffers, in registration order.
struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};
std::vector<NamedTensor> state_of(const torch::nn::Module& module);
int64_t parameter_count(const torch::nn::Module& module);

/// Reorders 4-d parameters in memory to channels-last. Before the first backward pass only.
void to_channels_last(torch::nn::Module& module);

// Starting weights that more than one family uses and that LibTorch's own init.h lacks. All draw from the
// global torch generator.

/// Normal with mean 0 and deviation `std`, cut at [-2, 2]: the arithmetic and draws of Python's
/// torch.nn.init.trunc_normal_.
void truncated_normal(torch::Tensor tensor, double std);

/// Every convolution below `module`, in registration order: normal with variance 2 / fan-out (He et al.
/// 2015), bias 0.
void he_normal_convolutions(torch::nn::Module& module);

}  // namespace stoker::model
