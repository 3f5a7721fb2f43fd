// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/utils.h>

#include "core/error.h"
#include "model/freeze.h"
#include "model/loss.h"
#include "model/model.h"
#include "tests/model/deterministic_fill.h"

namespace stoker::model {
namespace {

std::shared_ptr<ImageModel> two_stream(const std::string& backbone) {
  at::set_num_threads(1);
  torch::manual_seed(3);
  ModelSpec spec;
  spec.name = "two_stream_convlstm";
  spec.backbone = backbone;
  spec.num_classes = 2;
  spec.width = 8;
  spec.lstm_channels = 6;
  return make_model(spec);
}

torch::Tensor noise_clip(int64_t steps, int64_t channels = 3) {
  return uniform_numbers(2 * steps * channels * 32 * 32, 5).reshape({2, steps, channels, 32, 32});
}

TEST(TwoStreamTest, MapsClipsOfAnyLengthToScores) {
  const auto model = two_stream("small_cnn");
  for (const int64_t steps : {1, 5}) {
    EXPECT_EQ(model->forward(noise_clip(steps)).sizes(), (std::vector<int64_t>{2, 2})) << steps;
  }
  model->eval();
  EXPECT_TRUE(torch::equal(model->forward(noise_clip(1)), model->forward(noise_clip(1).select(1, 0))));
}

TEST(TwoStreamTest, GradientReachesEveryParameter) {
  for (const char* backbone : {"small_cnn", "efficientnet_b0", "spectrogram_cnn"}) {
    const auto model = two_stream(backbone);
    cross_entropy_sum(model->forward(noise_clip(3)), torch::tensor({0, 1}, torch::kInt64), 0).backward();
    for (const auto& item : model->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << backbone << ' ' << item.key();
      EXPECT_GT(item.value().grad().abs().sum().item<float>(), 0) << backbone << ' ' << item.key();
    }
  }
}

TEST(TwoStreamTest, TheOrderOfFramesMatters) {
  const auto model = two_stream("small_cnn");
  model->eval();
  const torch::Tensor clip = noise_clip(4);
  EXPECT_FALSE(torch::allclose(model->forward(clip), model->forward(clip.flip({1})), 1e-6, 1e-7));
}

TEST(TwoStreamTest, TakesBothViewsFromTheSource) {
  const auto model = two_stream("small_cnn");
  model->eval();
  const torch::Tensor clip = noise_clip(2);
  const torch::Tensor coarse = at::avg_pool2d(clip.flatten(0, 1), 4, 4);
  const torch::Tensor low = at::upsample_bilinear2d(coarse, {32, 32}, false).reshape(clip.sizes());
  const torch::Tensor made_here = model->forward(clip);
  EXPECT_TRUE(torch::allclose(model->forward(at::cat({clip, low}, 2)), made_here, 1e-5, 1e-6));
  EXPECT_FALSE(torch::allclose(model->forward(at::cat({clip, clip}, 2)), made_here, 1e-5, 1e-6));
}

TEST(TwoStreamTest, RefusesABackboneWithoutFeatureMap) {
  for (const char* backbone : {"vit_s_16", "peer_cnn", "two_stream_convlstm", "resnet81"}) {
    try {
      two_stream(backbone);
      FAIL() << backbone << " was accepted";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::config) << backbone;
    }
  }
}

/// Gray clips of six frames under noise, three dark and three bright: all dark ones first (0), or in turn
/// (1). No frame alone, nor their mean, shows the class.
struct FlickerClips {
  torch::Tensor images;  ///< [count, 6, 3, 16, 16]
  torch::Tensor labels;  ///< int64 [count]
};

FlickerClips flicker_clips(int64_t count) {
  const torch::Tensor slow = torch::tensor({-1.F, -1.F, -1.F, 1.F, 1.F, 1.F});
  const torch::Tensor fast = torch::tensor({-1.F, 1.F, -1.F, 1.F, -1.F, 1.F});
  const torch::Tensor labels = torch::randint(2, {count}, torch::kInt64);
  const torch::Tensor light = torch::stack({slow, fast}).index_select(0, labels).view({count, 6, 1, 1, 1});
  return {light + torch::randn({count, 6, 3, 16, 16}) / 4, labels};
}

TEST(TwoStreamTest, LearnsAFlickerThatNoSingleFrameShows) {
  const auto model = two_stream("small_cnn");
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.01));
  for (int step = 0; step < 60; ++step) {
    const FlickerClips clips = flicker_clips(16);
    model->zero_grad();
    (cross_entropy_sum(model->forward(clips.images), clips.labels, 0) / 16).backward();
    adam.step();
  }
  model->eval();
  const torch::NoGradGuard no_grad;
  const FlickerClips clips = flicker_clips(64);
  const torch::Tensor right = model->forward(clips.images).argmax(1).eq(clips.labels);
  EXPECT_GT(right.to(torch::kFloat32).mean().item<float>(), 0.95F);
}

TEST(TwoStreamTest, ItsBackbonesLearnInLayersOfTheirOwn) {
  const auto model = two_stream("small_cnn");
  const int64_t last = model->layer_count() - 1;
  EXPECT_EQ(model->layer_of("fc.weight"), last);
  EXPECT_EQ(model->layer_of("low_quality.memory.hidden.weight"), last - 1);
  EXPECT_EQ(model->layer_of("high_quality.backbone.stem.conv.weight"), 0);
  EXPECT_EQ(model->layer_of("low_quality.backbone.stem.conv.weight"), 0);
}

TEST(SpectrogramCnnTest, MapsOneChannelOfAnyLengthToScores) {
  ModelSpec spec;
  spec.name = "spectrogram_cnn";
  spec.in_chans = 1;
  spec.num_classes = 2;
  const auto model = make_model(spec);
  EXPECT_EQ(model->forward(torch::zeros({2, 1, 64, 64})).sizes(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(model->forward(torch::zeros({2, 1, 64, 300})).sizes(), (std::vector<int64_t>{2, 2}));
  cross_entropy_sum(model->forward(uniform_numbers(4 * 64 * 64, 1).reshape({4, 1, 64, 64})),
                    torch::tensor({0, 1, 0, 1}, torch::kInt64), 0)
      .backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_GT(item.value().grad().abs().sum().item<float>(), 0) << item.key();
  }
}

}  // namespace
}  // namespace stoker::model
