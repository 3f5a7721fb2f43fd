// SPDX-License-Identifier: Apache-2.0
#include "data/feed/device_feed.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/feed/normalise.h"
#include "data/open_datasets.h"
#include "made_data.h"

namespace stoker::data {
namespace {

const std::vector<double> kMean = {0.485, 0.456, 0.406}, kStd = {0.229, 0.224, 0.225};

/// Ten images of 6 x 5 pixels.
std::shared_ptr<Loader> pattern_loader(const TempFolder& folder, int channels, int64_t batch_size) {
  for (int i = 0; i < 10; ++i) {
    Bytes pixels = pattern_pixels(6, 6, channels);
    for (uint8_t& value : pixels) value = static_cast<uint8_t>(value + 25 * i);
    folder.write(std::to_string(i) + ".png", png_of(pixels, 6, 6, channels));
  }
  TransformPlan plan;
  plan.shape = square_shape(6, channels);
  plan.eval_crop = config::EvalCrop::none;
  LoaderSettings settings;
  settings.batch_size = batch_size;
  settings.num_workers = 1;
  return std::make_shared<Loader>(open_loose_images(folder.path(), true), plan, settings);
}

void expect_normalised(int channels, bool channels_last) {
  const TempFolder folder;
  FeedSettings settings;
  settings.channels_last = channels_last;
  settings.mean.assign(kMean.begin(), kMean.begin() + channels);
  settings.std.assign(kStd.begin(), kStd.begin() + channels);
  DeviceFeed feed(pattern_loader(folder, channels, 4), settings);
  feed.begin_epoch(0);
  Batch batch;
  int64_t images = 0;
  while (feed.next(batch)) {
    const int64_t count = batch.image_count();
    EXPECT_EQ(batch.images.sizes(), torch::IntArrayRef({count, channels, 6, 6}));
    EXPECT_EQ(batch.images.dtype(), torch::kFloat32);
    EXPECT_TRUE(batch.images.is_contiguous(settings.memory_format()));
    EXPECT_EQ(batch.planned_images, count);
    const Bytes pattern = pattern_pixels(6, 6, channels);
    const auto value = batch.images.accessor<float, 4>();
    for (int64_t n = 0; n < count; ++n) {
      for (int64_t i = 0; i < 36 * channels; ++i) {
        const int64_t c = i % channels, x = i / channels % 6, y = i / channels / 6;
        const double byte = static_cast<uint8_t>(pattern[static_cast<size_t>(i)] + 25 * (images + n));
        const auto at = static_cast<size_t>(c);
        // As torchvision has it: to_tensor() and normalize().
        EXPECT_NEAR(value[n][c][y][x], (byte / 255 - settings.mean[at]) / settings.std[at], 1e-6);
      }
      EXPECT_EQ(batch.samples[static_cast<size_t>(n)], images + n);
      EXPECT_EQ(batch.labels[n].item<int64_t>(), -1);
    }
    images += count;
  }
  EXPECT_EQ(images, 10);
}

TEST(DeviceFeedTest, NormalisesRgbContiguous) { expect_normalised(3, false); }
TEST(DeviceFeedTest, NormalisesRgbChannelsLast) { expect_normalised(3, true); }
TEST(DeviceFeedTest, NormalisesGray) { expect_normalised(1, false); }
TEST(DeviceFeedTest, NormalisesGrayChannelsLast) { expect_normalised(1, true); }

TEST(DeviceFeedTest, ATensorThatSomebodyHoldsIsNotWrittenAgain) {
  const TempFolder folder;
  DeviceFeed feed(pattern_loader(folder, 3, 1), {torch::kCPU, true, kMean, kStd, {}, {}});
  feed.begin_epoch(0);
  std::vector<torch::Tensor> held, views, copies;
  Batch batch;
  while (feed.next(batch)) {
    copies.push_back(batch.images.clone());
    if (held.size() < 5) {
      held.push_back(batch.images);
      views.push_back(batch.images);
    } else {
      held.push_back(batch.images.clone());
      views.push_back(batch.images.detach());  // only a view holds the memory
    }
  }
  for (size_t i = 0; i < held.size(); ++i) {
    EXPECT_TRUE(torch::equal(held[i], copies[i])) << i;
    EXPECT_TRUE(torch::equal(views[i].narrow(2, 0, 1), copies[i].narrow(2, 0, 1))) << i;
  }
}

TEST(DeviceFeedTest, MemoryIsUsedAgain) {
  const TempFolder folder;
  DeviceFeed feed(pattern_loader(folder, 3, 1), {torch::kCPU, true, kMean, kStd, {}, {}});
  feed.begin_epoch(0);
  Batch batch;
  ASSERT_TRUE(feed.next(batch));
  const void* const memory = batch.images.data_ptr();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(feed.next(batch));
    EXPECT_EQ(batch.images.data_ptr(), memory);
  }
}

TEST(DeviceFeedTest, BeginsAnEpochAtABatch) {
  const TempFolder folder;
  DeviceFeed feed(pattern_loader(folder, 1, 4), {torch::kCPU, false, {0.5}, {0.25}, {}, {}});
  feed.begin_epoch(0, 2);
  Batch batch;
  ASSERT_TRUE(feed.next(batch));
  EXPECT_EQ(batch.samples, std::vector<int64_t>({8, 9}));
  EXPECT_FALSE(feed.next(batch));
}

/// The message of the core::Error that taking a batch of `channels` ends with, normalised by these.
std::string refusal_of(int channels, const std::vector<double>& mean, const std::vector<double>& std) {
  const TempFolder folder;
  try {
    DeviceFeed feed(pattern_loader(folder, channels, 4),
                    {torch::kCPU, false, mean, std, /*on_copy=*/{}, /*resident=*/{}});
    feed.begin_epoch(0);
    Batch batch;
    feed.next(batch);
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::config);
    return error.what();
  }
  return "";
}

TEST(DeviceFeedTest, MeansForOtherChannelsAreAnError) {
  EXPECT_EQ(refusal_of(1, kMean, kStd), "mean and std have 3 values, but the samples have 1 channel");
  EXPECT_EQ(refusal_of(3, {0.5}, {0.25}), "mean and std have 1 value, but the samples have 3 channels");
  EXPECT_EQ(refusal_of(3, {}, {}), "mean and std have 0 values, but the samples have 3 channels");
  EXPECT_EQ(refusal_of(3, kMean, {0.25}), "mean has 3 values, but std has 1 value");
}

TEST(NormaliseTest, FloatsOfOtherChannelsAreAnError) {
  const std::vector<float> pixels(4);
  std::vector<float> out(4);
  const NormalLine line = make_normal_line({0, 0, 0}, {1, 1, 1});
  EXPECT_THROW(normalise(pixels.data(), 1, 2, /*channels=*/2, line, false, out.data()), core::Error);
  EXPECT_THROW(make_normal_line({0, 0}, {1}), core::Error);
}

TEST(NormaliseTest, TheTableIsRoundedOnce) {
  const NormalTable table = make_normal_table({0.485}, {0.229});
  EXPECT_EQ(table[0][0], static_cast<float>(-0.485 / 0.229));
  EXPECT_EQ(table[0][255], static_cast<float>((1 - 0.485) / 0.229));
}

}  // namespace
}  // namespace stoker::data
