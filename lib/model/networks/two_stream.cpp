// SPDX-License-Identifier: Apache-2.0
// A two-stream detector for clips, after the deepfake detectors that look at faces both sharp and degraded:
// what manipulation leaves behind shows in fine detail, what survives compression in the coarse one, and both
// over time.
//
//   clip -> high-quality view -> backbone per frame -> 1x1 convolution -> ConvLSTM -> mean over time and place
//   clip -> low-quality view  -> backbone per frame -> 1x1 convolution -> ConvLSTM -> mean over time and place
//   both means side by side -> dropout -> classifier
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <torch/nn/modules/linear.h>

#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "model/architectures.h"
#include "model/layers/conv.h"
#include "model/layers/conv_lstm.h"
#include "model/layers/drop_path.h"

namespace stoker::model {
namespace {

constexpr int64_t kLowQualityScale = 4;  // the low-quality view keeps one pixel of this number in each direction

/// Frames [N, C, H, W] at a quarter of the resolution, at their old size: fine detail is lost.
torch::Tensor low_quality(const torch::Tensor& frames) {
  const torch::Tensor coarse = at::avg_pool2d(frames, kLowQualityScale, kLowQualityScale, /*padding=*/0,
                                              /*ceil_mode=*/true);
  return at::upsample_bilinear2d(coarse, {frames.size(2), frames.size(3)}, /*align_corners=*/false);
}

/// One view of a clip. frames [B * T, C, H, W] -> [B, channels].
class ClipStream : public torch::nn::Module {
 public:
  ClipStream(std::shared_ptr<ImageModel> backbone, int64_t channels) {
    backbone_ = register_module("backbone", std::move(backbone));
    narrow_ =
        register_module("narrow", std::make_shared<ConvNormAct>(ConvShape{backbone_->feature_channels(), channels},
                                                                NormSettings{}, Activation::relu));
    memory_ = register_module("memory", std::make_shared<ConvLstm>(channels, channels, /*kernel=*/3));
  }

  torch::Tensor forward(const torch::Tensor& frames, int64_t steps) {
    const torch::Tensor maps = narrow_->forward(backbone_->features(frames));  // [B * T, channels, h, w]
    const torch::Tensor states = memory_->forward(
        maps.reshape({-1, steps, maps.size(1), maps.size(2), maps.size(3)}));  // [B, T, channels, h, w]
    return states.mean({1, 3, 4});
  }

  ImageModel& backbone() { return *backbone_; }

 private:
  std::shared_ptr<ImageModel> backbone_;
  std::shared_ptr<ConvNormAct> narrow_;
  std::shared_ptr<ConvLstm> memory_;
};

class TwoStreamConvLstm : public ImageModel {
 public:
  TwoStreamConvLstm(const ModelSpec& spec, BackboneFactory make_backbone)
      : in_chans_(spec.in_chans), drop_rate_(spec.drop_rate) {
    ModelSpec backbone = spec;
    backbone.name = spec.backbone;
    backbone.drop_rate = 0;  // there is no classifier that it could stand before
    for (const char* name : {"high_quality", "low_quality"}) {
      streams_.push_back(
          register_module(name, std::make_shared<ClipStream>(make_backbone(backbone), spec.lstm_channels)));
    }
    fc_ = register_module("fc", torch::nn::Linear(2 * spec.lstm_channels, spec.num_classes));
    add_layers();
  }

  /// images [B, T, C, H, W], or [B, C, H, W] as clips of one frame. With twice the network's channels the
  /// source has made both views, the high-quality one first; else the other is made here.
  torch::Tensor forward(torch::Tensor images) override {
    if (images.dim() == 4) images = images.unsqueeze(1);
    require_clip(images);
    const int64_t steps = images.size(1);
    const torch::Tensor frames = images.flatten(0, 1);  // [B * T, C, H, W]
    const bool has_both = frames.size(1) == 2 * in_chans_;
    const torch::Tensor high = has_both ? frames.slice(1, 0, in_chans_) : frames;
    const torch::Tensor low = has_both ? frames.slice(1, in_chans_) : low_quality(frames);
    const torch::Tensor seen = at::cat({streams_[0]->forward(high, steps), streams_[1]->forward(low, steps)}, 1);
    return fc_(drop_out(seen, drop_rate_, is_training()));  // [B, 2 * channels] -> [B, num_classes]
  }

  std::string head_prefix() const override { return "fc."; }
  std::vector<std::string> no_weight_decay() const override { return streams_[0]->backbone().no_weight_decay(); }

  std::vector<ImageModel*> backbones() override { return {&streams_[0]->backbone(), &streams_[1]->backbone()}; }

  void set_stage_runner(StageRunner runner) override {
    for (const auto& stream : streams_) stream->backbone().set_stage_runner(runner);
  }

 private:
  /// Both backbones layer by layer, then what follows them.
  void add_layers() {
    const int64_t count = streams_[0]->backbone().layer_count();
    for (int64_t layer = 0; layer < count; ++layer) {
      std::vector<std::string> prefixes;
      for (const std::string& prefix : streams_[0]->backbone().layer_prefixes(layer)) {
        for (const char* stream : {"high_quality", "low_quality"}) {
          prefixes.push_back(std::string(stream) + ".backbone." + prefix);
        }
      }
      add_layer(std::move(prefixes));
    }
    add_layer({"high_quality.narrow.", "high_quality.memory.", "low_quality.narrow.", "low_quality.memory."});
    add_layer({"fc."});
    set_layers_of_head(2);
  }

  void require_clip(const torch::Tensor& images) const {
    const bool fits = images.dim() == 5 && (images.size(2) == in_chans_ || images.size(2) == 2 * in_chans_);
    if (fits) return;
    throw core::Error(
        core::ErrorKind::bug,
        core::format("two_stream_convlstm takes clips [B, T, {} or {}, H, W], but was given {} dimensions", in_chans_,
                     2 * in_chans_, images.dim()));
  }

  int64_t in_chans_;
  double drop_rate_;
  std::vector<std::shared_ptr<ClipStream>> streams_;
  torch::nn::Linear fc_{nullptr};
};

}  // namespace

std::shared_ptr<ImageModel> make_two_stream(const ModelSpec& spec, BackboneFactory make_backbone) {
  if (spec.backbone == spec.name) {
    throw core::Error(core::ErrorKind::config, spec.name + " cannot be its own backbone",
                      "choose a network of single images with --backbone, such as efficientnet_b0");
  }
  return std::make_shared<TwoStreamConvLstm>(spec, make_backbone);
}

}  // namespace stoker::model
