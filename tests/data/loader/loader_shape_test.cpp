// SPDX-License-Identifier: Apache-2.0
// Rows that are not square images of bytes: numbers of other kinds, and clips.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "data/feed/device_feed.h"
#include "data/loader/loader.h"
#include "data/source.h"
#include "made_data.h"

namespace stoker::data {
namespace {

constexpr int kShapeWorkers[] = {0, 1, 2, 7, 16};

/// Spectrograms 4 high, 6 wide, with 2 channels: number k of sample i is 100 i + k.
class FloatSource : public LeafSource {
 public:
  explicit FloatSource(Element element, int64_t size = 23) : element_(element), size_(size) {}

  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % 2; }
  std::string name(int64_t index) const override { return core::format("made/{}", index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  SampleShape fixed_shape() const override { return {0, 4, 6, 2, element_}; }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    const torch::Tensor numbers = (torch::arange(48, torch::kFloat32) + 100.0 * static_cast<double>(index))
                                      .to(element_ == Element::float16 ? torch::kFloat16 : torch::kFloat32);
    buffer.resize(static_cast<size_t>(fixed_shape().bytes()));
    std::memcpy(buffer.data(), numbers.data_ptr(), buffer.size());
    content.bytes = buffer.data();
    content.size = buffer.size();
    content.height = index == wrong_height_at ? 3 : 4;
    content.width = 6;
    content.channels = 2;
    content.element = element_;
    return "";
  }

  int64_t wrong_height_at = -1;

 private:
  const Element element_;
  const int64_t size_;
};

/// Videos of 1 to 9 encoded frames; every pixel of frame f of video i is 20 i + f where it is plain, else a
/// pattern.
class VideoSource : public LeafSource, protected FrameSource {
 public:
  explicit VideoSource(int64_t clip_frames, bool plain, int64_t size = 11) : clip_frames_(clip_frames), size_(size) {
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t f = 0; f < frame_count(i); ++f) {
        const auto value = static_cast<uint8_t>(20 * i + f);
        Bytes pixels = plain ? flat_pixels(24, 20, {value}) : pattern_pixels(24, 20, 1);
        if (!plain) {
          for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>(pixel + 7 * value);
        }
        frames_.push_back(png_of(pixels, 24, 20, 1));
      }
      ends_.push_back(static_cast<int64_t>(frames_.size()));
    }
  }

  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % 2; }
  std::string name(int64_t index) const override { return core::format("video/{}", index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  SampleShape fixed_shape() const override {
    SampleShape shape;
    shape.frames = clip_frames_ > 1 ? clip_frames_ : 0;
    return shape;
  }
  const FrameSource* frames() const override { return this; }
  int64_t frame_count(int64_t index) const override { return index % 9 + 1; }
  int64_t frame_bytes(int64_t, int64_t) const override { return -1; }
  std::string frame_name(int64_t, int64_t frame) const override { return core::format("{}.png", frame); }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    return read_frame(index, 0, buffer, content);
  }
  std::string read_frame(int64_t index, int64_t frame, std::vector<uint8_t>&, SampleContent& content) const override {
    const int64_t begin = index == 0 ? 0 : ends_[static_cast<size_t>(index) - 1];
    const Bytes& file = frames_[static_cast<size_t>(begin + frame)];
    content.bytes = file.data();
    content.size = index == damaged_video && frame == damaged_frame ? file.size() / 2 : file.size();
    return "";
  }

  int64_t damaged_video = -1, damaged_frame = -1;

 private:
  const int64_t clip_frames_, size_;
  std::vector<Bytes> frames_;
  std::vector<int64_t> ends_;
};

LoaderSettings settings_with(int64_t workers) {
  LoaderSettings settings;
  settings.batch_size = 4;
  settings.num_workers = workers;
  settings.prefetch_factor = 2;
  settings.seed = 7;
  return settings;
}

/// Everything that varies a picture, for training.
TransformPlan varying_plan(const Source& source, config::FrameSampling sampling) {
  config::ResolvedDataOptions data;
  data.img_size = {16, 16};
  data.in_chans = 1;
  data.mean = {0.4};
  data.frame_sampling = sampling;
  data.frame_stride = 2;
  config::ResolvedAugmentOptions augment;
  augment.train_crop = config::TrainCrop::random_resized;
  augment.hflip = augment.rotate90 = augment.random_erasing = 0.5;
  augment.rotation = 20;
  augment.gaussian_noise = 0.05;
  augment.color_jitter = {0.3};
  return make_transform_plan(data, augment, /*training=*/true, source.fixed_shape());
}

/// The pixels as they are, of evaluation.
TransformPlan plain_plan(const Source& source, config::FrameSampling sampling, int64_t stride) {
  config::ResolvedDataOptions data;
  data.img_size = {20, 20};
  data.in_chans = 1;
  data.frame_sampling = sampling;
  data.frame_stride = stride;
  config::ResolvedAugmentOptions augment;
  augment.crop_pct = 1;
  return make_transform_plan(data, augment, /*training=*/false, source.fixed_shape());
}

std::string bits_of_epoch(Loader& loader, int64_t epoch) {
  loader.begin_epoch(epoch);
  core::Hasher hasher;
  for (HostBatch batch; loader.next(batch); loader.release(batch)) {
    hasher.add(batch.images.data_ptr(), batch.images.nbytes());
    hasher.add(batch.labels.data_ptr<int64_t>(), static_cast<uint64_t>(batch.labels.numel()) * 8);
    hasher.add(batch.samples.data(), batch.samples.size() * 8);
  }
  return hasher.hex();
}

/// The first pixel of each frame of the first batch, a row per clip: int64 [n, T].
torch::Tensor first_pixels(Loader& loader, int64_t epoch = 0) {
  loader.begin_epoch(epoch);
  HostBatch batch;
  loader.next(batch);
  const torch::Tensor frames = batch.images.dim() == 5 ? batch.images : batch.images.unsqueeze(1);
  const torch::Tensor seen = frames.flatten(2).select(2, 0).to(torch::kInt64).contiguous().clone();
  loader.release(batch);
  return seen;
}

std::vector<int64_t> numbers_of(const torch::Tensor& row) {
  return {row.data_ptr<int64_t>(), row.data_ptr<int64_t>() + row.numel()};
}

/// The distinct streams of two shuffled epochs that different numbers of workers give.
std::set<std::string> streams_of_any_workers(const std::shared_ptr<const Source>& source, const TransformPlan& plan) {
  std::set<std::string> streams;
  for (const int workers : kShapeWorkers) {
    LoaderSettings settings = settings_with(workers);
    settings.shuffle = true;
    Loader loader(source, plan, settings);
    streams.insert(bits_of_epoch(loader, 0) + bits_of_epoch(loader, 1));
  }
  return streams;
}

TEST(LoaderShapeTest, FloatsArriveAsTheyAreForAnyNumberOfWorkers) {
  for (const Element element : {Element::float32, Element::float16}) {
    const auto source = std::make_shared<FloatSource>(element);
    const TransformPlan plan = make_transform_plan({}, {}, /*training=*/true, source->fixed_shape());
    EXPECT_EQ(streams_of_any_workers(source, plan).size(), 1u);

    Loader loader(source, plan, settings_with(2));
    loader.begin_epoch(0);
    int64_t sample = 0;
    for (HostBatch batch; loader.next(batch); loader.release(batch)) {
      EXPECT_EQ(batch.images.sizes().slice(1), torch::IntArrayRef({4, 6, 2}));
      EXPECT_EQ(batch.images.scalar_type(), element == Element::float16 ? torch::kFloat16 : torch::kFloat32);
      const torch::Tensor rows = batch.images.to(torch::kFloat32).contiguous();
      for (int64_t i = 0; i < rows.numel(); ++i) {
        const auto exact = static_cast<float>(100 * (sample + i / 48) + i % 48);
        const float expected = element == Element::float16 ? static_cast<float>(static_cast<c10::Half>(exact)) : exact;
        ASSERT_EQ(rows.data_ptr<float>()[i], expected);
      }
      sample += rows.size(0);
    }
    EXPECT_EQ(sample, source->size());
  }
}

TEST(LoaderShapeTest, ASampleOfAnotherSizeThanPromisedIsBad) {
  const auto source = std::make_shared<FloatSource>(Element::float32);
  source->wrong_height_at = 2;
  Loader loader(source, make_transform_plan({}, {}, true, source->fixed_shape()), settings_with(1));
  loader.begin_epoch(0);
  HostBatch batch;
  const std::string message = error_of([&] { loader.next(batch); }).what();
  EXPECT_NE(message.find("made/2: is 3 x 6 x 2 of float32, but 4 x 6 x 2 of float32 is expected"), std::string::npos)
      << message;
}

TEST(LoaderShapeTest, APlanOfAnotherShapeThanTheSourceIsABug) {
  const auto floats = std::make_shared<FloatSource>(Element::float32);
  TransformPlan plan = make_transform_plan({}, {}, true, floats->fixed_shape());
  plan.shape.element = Element::uint8;
  EXPECT_EQ(error_of([&] { Loader(floats, plan, settings_with(0)); }).kind(), core::ErrorKind::bug);
  const auto videos = std::make_shared<VideoSource>(4, true);
  plan.shape = square_shape(20, 1);
  EXPECT_EQ(error_of([&] { Loader(videos, plan, settings_with(0)); }).kind(), core::ErrorKind::bug);
}

TEST(LoaderShapeTest, ClipsAreTheSameForAnyNumberOfWorkers) {
  for (const auto sampling : {config::FrameSampling::uniform, config::FrameSampling::stride}) {
    const auto source = std::make_shared<VideoSource>(3, /*plain=*/false);
    const TransformPlan plan = varying_plan(*source, sampling);
    EXPECT_EQ(streams_of_any_workers(source, plan).size(), 1u);
  }
}

TEST(LoaderShapeTest, FramesLieInTheirOrder) {
  const auto source = std::make_shared<VideoSource>(3, /*plain=*/true);
  LoaderSettings settings = settings_with(2);
  settings.batch_size = 9;
  Loader uniform(source, plain_plan(*source, config::FrameSampling::uniform, 1), settings);
  const torch::Tensor seen = first_pixels(uniform);                 // videos of 1 to 9 frames
  EXPECT_EQ(numbers_of(seen[0]), std::vector<int64_t>({0, 0, 0}));  // the last frame again
  EXPECT_EQ(numbers_of(seen[1]), std::vector<int64_t>({20, 21, 21}));
  EXPECT_EQ(numbers_of(seen[2]), std::vector<int64_t>({40, 41, 42}));
  EXPECT_EQ(numbers_of(seen[8]), std::vector<int64_t>({161, 164, 167}));  // the middles of three thirds of nine
  Loader strides(source, plain_plan(*source, config::FrameSampling::stride, 3), settings);
  const torch::Tensor apart = first_pixels(strides);
  EXPECT_EQ(numbers_of(apart[8]), std::vector<int64_t>({161, 164, 167}));  // in the middle
  EXPECT_EQ(numbers_of(apart[4]), std::vector<int64_t>({80, 83, 84}));
}

TEST(LoaderShapeTest, AStrideBeginsAnywhereInTraining) {
  const auto source = std::make_shared<VideoSource>(3, /*plain=*/true);
  TransformPlan plan = plain_plan(*source, config::FrameSampling::stride, 2);
  plan.clip.random = true;
  LoaderSettings settings = settings_with(1);
  settings.batch_size = 9;
  Loader loader(source, plan, settings);
  std::set<int64_t> starts;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const std::vector<int64_t> frames = numbers_of(first_pixels(loader, epoch)[8]);
    starts.insert(frames[0] - 160);
    EXPECT_EQ(frames[1], frames[0] + 2);
    EXPECT_EQ(frames[2], frames[0] + 4);
  }
  EXPECT_EQ(starts, std::set<int64_t>({0, 1, 2, 3, 4}));
}

TEST(LoaderShapeTest, OneFrameOfAVideoIsAnImage) {
  const auto source = std::make_shared<VideoSource>(1, /*plain=*/true);
  Loader loader(source, plain_plan(*source, config::FrameSampling::uniform, 1), settings_with(1));
  loader.begin_epoch(0);
  HostBatch batch;
  loader.next(batch);
  EXPECT_EQ(batch.images.sizes(), torch::IntArrayRef({4, 20, 20, 1}));
  EXPECT_EQ(batch.images[2][0][0][0].item<int64_t>(), 41);  // the middle of three
  loader.release(batch);
}

TEST(LoaderShapeTest, WhatIsDrawnForAClipHoldsForAllItsFrames) {
  // One frame over and over: whatever differs between the rows was drawn apart.
  class StillSource : public VideoSource {
   public:
    StillSource() : VideoSource(4, /*plain=*/false) {}
    int64_t frame_count(int64_t) const override { return 4; }
    std::string read_frame(int64_t index, int64_t, std::vector<uint8_t>& buffer,
                           SampleContent& content) const override {
      return VideoSource::read_frame(index, 0, buffer, content);
    }
  };
  const auto source = std::make_shared<StillSource>();
  Loader loader(source, varying_plan(*source, config::FrameSampling::uniform), settings_with(2));
  loader.begin_epoch(0);
  torch::Tensor earlier;
  for (HostBatch batch; loader.next(batch); loader.release(batch)) {
    for (int64_t n = 0; n < batch.images.size(0); ++n) {
      const torch::Tensor clip = batch.images[n];
      for (int64_t t = 1; t < 4; ++t) EXPECT_TRUE(torch::equal(clip[t], clip[0])) << n;
      EXPECT_FALSE(earlier.defined() && torch::equal(clip[0], earlier));
      earlier = clip[0].clone();
    }
  }
}

TEST(LoaderShapeTest, ABadFrameMakesTheClipBadAndIsNamed) {
  const auto source = std::make_shared<VideoSource>(3, /*plain=*/false);
  source->damaged_video = 2;
  source->damaged_frame = 1;
  const TransformPlan plan = varying_plan(*source, config::FrameSampling::uniform);
  {
    Loader loader(source, plan, settings_with(1));
    loader.begin_epoch(0);
    HostBatch batch;
    const std::string message = error_of([&] { loader.next(batch); }).what();
    EXPECT_NE(message.find("video/2: 1.png: "), std::string::npos) << message;
  }
  core::set_console_level(core::LogLevel::error);
  LoaderSettings settings = settings_with(2);
  settings.on_bad_image = config::OnBadImage::skip;
  settings.max_bad = 1;
  Loader loader(source, plan, settings);
  loader.begin_epoch(0);
  std::vector<int64_t> samples;
  for (HostBatch batch; loader.next(batch); loader.release(batch)) {
    samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
    EXPECT_EQ(batch.images.size(0), static_cast<int64_t>(batch.samples.size()));
  }
  EXPECT_EQ(samples, std::vector<int64_t>({0, 1, 3, 4, 5, 6, 7, 8, 9, 10}));
  core::set_console_level(core::LogLevel::info);
}

TEST(DeviceFeedShapeTest, FloatsAreNormalisedWithoutTheDivisionOfBytes) {
  for (const Element element : {Element::float32, Element::float16}) {
    for (const bool channels_last : {false, true}) {
      const auto source = std::make_shared<FloatSource>(element, 3);
      auto loader = std::make_shared<Loader>(
          source, make_transform_plan({}, {}, /*training=*/false, source->fixed_shape()), settings_with(1));
      FeedSettings settings;
      settings.channels_last = channels_last;
      settings.mean = {10, 20};
      settings.std = {2, 4};
      DeviceFeed feed(loader, settings);
      feed.begin_epoch(0);
      Batch batch;
      ASSERT_TRUE(feed.next(batch));
      EXPECT_EQ(batch.images.sizes(), torch::IntArrayRef({3, 2, 4, 6}));
      EXPECT_TRUE(batch.images.is_contiguous(settings.memory_format()));
      for (int64_t n = 0; n < 3; ++n) {
        for (int64_t c = 0; c < 2; ++c) {
          const double number = static_cast<double>(100 * n + (2 * 6 + 3) * 2 + c);  // at row 2, column 3
          EXPECT_NEAR(batch.images[n][c][2][3].item<float>(),
                      (number - 10 * static_cast<double>(c + 1)) / (2 * static_cast<double>(c + 1)), 1e-4);
        }
      }
    }
  }
}

TEST(DeviceFeedShapeTest, ClipsAreBatchesOfClipsWhoseFramesLieAsImagesDo) {
  for (const bool channels_last : {false, true}) {
    const auto source = std::make_shared<VideoSource>(3, /*plain=*/true);
    auto loader =
        std::make_shared<Loader>(source, plain_plan(*source, config::FrameSampling::uniform, 1), settings_with(1));
    FeedSettings settings;
    settings.channels_last = channels_last;
    settings.mean = {0.5};
    settings.std = {0.25};
    DeviceFeed feed(loader, settings);
    feed.begin_epoch(0, 2);  // videos 8, 9 and 10
    Batch batch;
    ASSERT_TRUE(feed.next(batch));
    EXPECT_EQ(batch.images.sizes(), torch::IntArrayRef({3, 3, 1, 20, 20}));
    EXPECT_TRUE(batch.images.flatten(0, 1).is_contiguous(settings.memory_format()));
    const double frames[3] = {161, 164, 167};  // of video 8
    for (int64_t t = 0; t < 3; ++t) {
      EXPECT_NEAR(batch.images[0][t][0][7][5].item<float>(), (frames[t] / 255 - 0.5) / 0.25, 1e-6);
    }
  }
}

}  // namespace
}  // namespace stoker::data
