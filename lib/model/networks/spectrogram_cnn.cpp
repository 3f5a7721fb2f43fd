// SPDX-License-Identifier: Apache-2.0
// A small, fast network for spectrograms of about 64 x 64 (frequency x time), one channel usually. Five 3x3
// convolutions with batch norm and ReLU, of which the first four halve the size, then the mean over time of
// what each of the remaining frequency bands shows, since a sound means the same whenever it comes but not at
// any pitch:
//
//   [B, 1, 64, 64] -> 32 @ 32x32 -> 64 @ 16x16 -> 128 @ 8x8 -> 256 @ 4x4 -> 256 @ 4x4
//                  -> 4 bands x 256 -> dropout -> classifier
#include <torch/nn/modules/linear.h>

#include "model/architectures.h"
#include "model/image_model.h"
#include "model/layers/conv.h"
#include "model/layers/drop_path.h"
#include "model/layers/grid_means.h"

namespace stoker::model {
namespace {

constexpr int64_t kSpectrogramPlan[][2] = {{32, 2}, {64, 2}, {128, 2}, {256, 2}, {256, 1}};  // channels, stride
constexpr int64_t kBands = 4;

class SpectrogramCnn : public ImageModel {
 public:
  explicit SpectrogramCnn(const ModelSpec& spec) : channels_(spec.in_chans), drop_rate_(spec.drop_rate) {
    const auto parts = register_module("features", std::make_shared<torch::nn::Module>());
    for (const auto& [out, stride] : kSpectrogramPlan) {
      const std::string name = std::to_string(layers_.size());
      layers_.push_back(parts->register_module(
          name, std::make_shared<ConvNormAct>(ConvShape{channels_, out, 3, stride}, NormSettings{}, Activation::relu)));
      add_layer({"features." + name + "."});
      channels_ = out;
    }
    he_normal_convolutions(*parts);
    if (spec.num_classes == 0) return;
    fc_ = register_module("fc", torch::nn::Linear(kBands * channels_, spec.num_classes));
    add_layer({"fc."});
  }

  torch::Tensor features(torch::Tensor x) override {
    for (const auto& layer : layers_) x = run_stage(*layer, x);
    return x;  // [B, 256, H/16, W/16]
  }
  int64_t feature_channels() const override { return channels_; }

  torch::Tensor forward(torch::Tensor x) override {
    x = grid_means(features(x), kBands, 1).flatten(1);  // [B, 256 * bands]
    return fc_(drop_out(x, drop_rate_, is_training()));
  }

  std::string head_prefix() const override { return "fc."; }

 private:
  int64_t channels_;
  double drop_rate_;
  std::vector<std::shared_ptr<ConvNormAct>> layers_;
  torch::nn::Linear fc_{nullptr};
};

}  // namespace

std::shared_ptr<ImageModel> make_spectrogram_cnn(const ModelSpec& spec) {
  return std::make_shared<SpectrogramCnn>(spec);
}

}  // namespace stoker::model
