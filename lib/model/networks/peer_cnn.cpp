// SPDX-License-Identifier: Apache-2.0
// A plain network: five 3x3 convolutions with batch norm, named as the layers of a Python nn.Sequential, so
// that weights move to and from such a script. For comparing speed and accuracy at equal arithmetic.
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "core/error.h"
#include "model/architectures.h"
#include "model/layers/batch_norm.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"

namespace stoker::model {
namespace {

constexpr int64_t kPool = 0;
/// Channels of each convolution, in order, and where the size is halved.
constexpr int64_t kPeerPlan[] = {32, 32, kPool, 64, 64, kPool, 128};

class PeerCnn : public ImageModel {
 public:
  PeerCnn(int64_t in_chans, int64_t num_classes, double drop_rate) : drop_rate_(drop_rate) {
    int64_t index = 0;
    int64_t in = in_chans;
    for (const int64_t out : kPeerPlan) {
      if (out == kPool) {
        layers_.push_back({});
        ++index;
        continue;
      }
      layers_.push_back({register_module(std::to_string(index), unbiased_conv(in, out, 3)),
                         register_module(std::to_string(index + 1), torch::nn::BatchNorm2d(out))});
      add_layer({std::to_string(index) + ".", std::to_string(index + 1) + "."});
      index += 3;  // convolution, batch norm, ReLU
      in = out;
    }
    index += 2;  // average pooling, flatten
    head_name_ = std::to_string(index);
    head_ = register_module(head_name_, torch::nn::Linear(in, num_classes));
    add_layer({head_prefix()});
  }

  torch::Tensor forward(torch::Tensor x) override {
    for (Layer& layer : layers_) {
      x = layer.conv.is_empty() ? at::max_pool2d(x, 2) : normalise(*layer.norm, convolve(layer.conv, x)).relu_();
    }
    return head_(drop_out(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1), drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return head_name_ + "."; }

  void set_stage_runner(StageRunner) override {
    throw core::Error(core::ErrorKind::config, "peer_cnn has no stages whose activations could be recomputed",
                      "leave --grad-checkpointing out, or choose another network");
  }

 private:
  /// A convolution with its batch norm, or a pooling layer when both are empty.
  struct Layer {
    torch::nn::Conv2d conv{nullptr};
    torch::nn::BatchNorm2d norm{nullptr};
  };

  std::vector<Layer> layers_;
  torch::nn::Linear head_{nullptr};
  std::string head_name_;
  double drop_rate_;
};

}  // namespace

std::shared_ptr<ImageModel> make_peer_cnn(const ModelSpec& spec) {
  return std::make_shared<PeerCnn>(spec.in_chans, spec.num_classes, spec.drop_rate);
}

}  // namespace stoker::model
