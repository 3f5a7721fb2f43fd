// SPDX-License-Identifier: Apache-2.0
#include "data/loader.h"

#include <gtest/gtest.h>

#include "data/device_feed.h"

namespace stoker::data {
namespace {

TEST(LoaderTest, ReadsFashionMnist) {
  config::DataOptions options;
  options.img_size = 28;
  options.in_chans = 1;
  config::AugmentOptions augment;
  augment.train_crop = config::TrainCrop::padded;
  augment.crop_padding = 2;
  const Datasets datasets = open_datasets(options);
  ASSERT_EQ(datasets.train->size(), 60000);
  LoaderSettings settings;
  settings.batch_size = 64;
  settings.num_workers = 2;
  settings.shuffle = true;
  auto loader = std::make_shared<Loader>(datasets.train, make_transform_plan(options, augment, true), settings);
  DeviceFeed feed(loader, {torch::kCPU, false, {0.28}, {0.35}});
  feed.begin_epoch(0);
  Batch batch;
  int64_t images = 0;
  while (feed.next(batch)) images += batch.image_count();
  EXPECT_EQ(images, 60000);
  EXPECT_EQ(batch.image_count(), 60000 % 64);
}

}  // namespace
}  // namespace stoker::data
