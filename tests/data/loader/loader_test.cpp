// SPDX-License-Identifier: Apache-2.0
// Which images come, in which order, with which bits.
#include "data/loader/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "core/hash.h"
#include "loader/made_source.h"

namespace stoker::data {
namespace {

using namespace loader_tests;

TEST(LoaderTest, YieldsTheSameStreamForAnyNumberOfWorkersAndAnyPrefetch) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/true);
  std::set<std::string> digests;
  for (const int workers : kWorkerCounts) {
    for (const int prefetch : kPrefetches) {
      Loader loader(source, small_plan(), small_settings(workers, prefetch));
      digests.insert(epoch_digest(loader, 0) + epoch_digest(loader, 1) + epoch_digest(loader, 1, 3));
    }
  }
  EXPECT_EQ(digests.size(), 1u);
  Loader loader(source, small_plan(), small_settings(2, 2));
  EXPECT_NE(epoch_digest(loader, 0), epoch_digest(loader, 1));
}

/// Everything of the chain at once.
TransformPlan augmenting_plan(int channels) {
  TransformPlan plan = small_plan();
  plan.shape.channels = channels;
  config::ResolvedDataOptions data;
  data.mean.assign(static_cast<size_t>(channels), 0.4);
  config::ResolvedAugmentOptions options;
  options.rotate90 = options.grayscale = options.gaussian_blur = options.random_erasing = 0.5;
  options.rotation = 20;
  options.rand_augment = {2, 9};
  options.policy = config::AugmentPolicy::ta_wide;
  options.color_jitter = {0.4, 0.4, 0.4, 0.1};
  options.gaussian_noise = 0.05;
  options.gaussian_blur_kernel = 3;
  plan.augment = make_augment_plan(data, options);
  return plan;
}

TEST(LoaderTest, TheAugmentedStreamIsTheSameForAnyNumberOfWorkers) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/true);
  for (const int channels : {1, 3}) {
    std::set<std::string> digests;
    for (const int workers : kWorkerCounts) {
      Loader loader(source, augmenting_plan(channels), small_settings(workers, 2));
      digests.insert(epoch_digest(loader, 0) + epoch_digest(loader, 1, 3));
    }
    EXPECT_EQ(digests.size(), 1u) << channels << " channels";
  }
}

TEST(LoaderTest, TimeOfAugmentationIsAStageOfItsOwn) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/true);
  Loader plain(source, small_plan(), small_settings(1, 2)),
      augmenting(source, augmenting_plan(3), small_settings(1, 2));
  epoch_digest(plain, 0);
  epoch_digest(augmenting, 0);
  EXPECT_EQ(plain.stats().augment_seconds, 0);
  EXPECT_GT(augmenting.stats().augment_seconds, 0);
}

TEST(LoaderTest, AugmentationMovesNoCropAndNoFlip) {
  // Erasing alone: outside the box the image is the one without augmentation.
  const auto source = std::make_shared<MadeSource>(8, /*encoded=*/false);
  TransformPlan erasing = small_plan();
  erasing.augment.erasing = 1;
  Loader plain(source, small_plan(), small_settings(0, 2)), other(source, erasing, small_settings(0, 2));
  plain.begin_epoch(0);
  other.begin_epoch(0);
  HostBatch a, b;
  ASSERT_TRUE(plain.next(a));
  ASSERT_TRUE(other.next(b));
  const torch::Tensor kept = (a.images == b.images).sum();  // int64 []
  EXPECT_GT(kept.item<int64_t>(), a.images.numel() / 2);
  EXPECT_LT(kept.item<int64_t>(), a.images.numel());
}

TEST(LoaderTest, TheStreamIsPartOfTheFormatOfARun) {
  // Changes when order, augmentation or resizing change: runs of an older version can then not be resumed
  // exactly.
  Loader loader(std::make_shared<MadeSource>(20, /*encoded=*/false), small_plan(), small_settings(1, 2));
  EXPECT_EQ(epoch_digest(loader, 3), "9301ca9b8082de9516e2b1fcb01d40bc");
}

TEST(LoaderTest, TargetsStandBesideTheirImagesForAnyNumberOfWorkers) {
  const auto source = std::make_shared<TargetedSource>(43, /*encoded=*/true);
  for (const int workers : kWorkerCounts) {
    Loader loader(source, small_plan(), small_settings(workers, 2));
    loader.begin_epoch(0);
    int64_t images = 0;
    for (HostBatch batch; loader.next(batch); loader.release(batch)) {
      ASSERT_EQ(batch.targets.sizes(), torch::IntArrayRef({static_cast<int64_t>(batch.samples.size()), 2}));
      for (size_t i = 0; i < batch.samples.size(); ++i, ++images) {
        EXPECT_EQ(batch.targets.data_ptr<float>()[2 * i], static_cast<float>(batch.samples[i]));
        EXPECT_EQ(batch.targets.data_ptr<float>()[2 * i + 1], static_cast<float>(100 + batch.samples[i]));
      }
    }
    EXPECT_EQ(images, 43);
  }
}

TEST(LoaderTest, TargetsMoveUpWithTheirImagesOverSkippedOnes) {
  const QuietLog quiet;
  const auto source = std::make_shared<TargetedSource>(
      20, /*encoded=*/false, [](int64_t index) { return index % 3 == 0 ? std::string("torn") : std::string(); });
  LoaderSettings settings = small_settings(2, 2);
  settings.on_bad_image = config::OnBadImage::skip;
  settings.max_bad = 20;
  Loader loader(source, small_plan(), settings);
  loader.begin_epoch(0);
  for (HostBatch batch; loader.next(batch); loader.release(batch)) {
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      EXPECT_EQ(batch.targets.data_ptr<float>()[2 * i], static_cast<float>(batch.samples[i]));
    }
  }
}

TEST(LoaderTest, AMirroredImageHasItsTargetsMirrored) {
  // Without a crop an image is what it was or its mirror image, which the pixels tell.
  TransformPlan plan = small_plan();
  plan.train_crop = config::TrainCrop::none;
  plan.hflip = 0;
  const auto source = std::make_shared<TargetedSource>(40, /*encoded=*/true);
  LoaderSettings settings = small_settings(1, 8);
  settings.shuffle = false;
  settings.batch_size = 40;
  HostBatch straight, drawn;
  Loader plain(source, plan, settings);
  plain.begin_epoch(0);
  ASSERT_TRUE(plain.next(straight));
  plan.hflip = 0.5;
  plan.target_rule.flip_signs = {1, -1};
  Loader flipping(source, plan, settings);
  flipping.begin_epoch(0);
  ASSERT_TRUE(flipping.next(drawn));
  int mirrored = 0;
  for (int64_t i = 0; i < 40; ++i) {
    const bool same = torch::equal(drawn.images[i], straight.images[i]);
    mirrored += same ? 0 : 1;
    EXPECT_EQ(drawn.targets[i][0].item<float>(), static_cast<float>(i));
    EXPECT_EQ(drawn.targets[i][1].item<float>(), static_cast<float>((same ? 1 : -1) * (100 + i))) << i;
  }
  EXPECT_GT(mirrored, 8);
  EXPECT_LT(mirrored, 32);
}

TEST(LoaderTest, ABalancedEpochIsTheSameForAnyNumberOfWorkersAndFromAnyBatch) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/false);  // classes of 15, 14 and 14
  std::set<std::string> digests, rests;
  for (const int workers : {0, 1, 7}) {
    LoaderSettings settings = small_settings(workers, 2);
    settings.class_balanced = true;
    Loader loader(source, small_plan(), settings);
    digests.insert(epoch_digest(loader, 1));
    rests.insert(epoch_digest(loader, 1, 3));
  }
  EXPECT_EQ(digests.size(), 1u);
  EXPECT_EQ(rests.size(), 1u);
  Loader plain(source, small_plan(), small_settings(1, 2));
  EXPECT_EQ(digests.count(epoch_digest(plain, 1)), 0u);
}

/// Nine images of class 0 and one of class 1.
class SkewedSource : public MadeSource {
 public:
  SkewedSource() : MadeSource(10, /*encoded=*/false) { class_names_ = {"many", "one"}; }
  int64_t label(int64_t index) const override { return index == 9 ? 1 : 0; }
};

TEST(LoaderTest, RepeatsOfASampleWithinAnEpochAreAugmentedAnew) {
  LoaderSettings settings = small_settings(2, 2);
  settings.class_balanced = true;
  settings.batch_size = 10;
  Loader loader(std::make_shared<SkewedSource>(), small_plan(), settings);
  loader.begin_epoch(0);
  HostBatch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.labels.sum().item<int64_t>(), 5);
  std::set<std::string> versions;
  for (int64_t i = 0; i < 10; ++i) {
    if (batch.samples[static_cast<size_t>(i)] != 9) continue;
    core::Hasher hasher;
    const torch::Tensor image = batch.images[i].contiguous();
    hasher.add(image.data_ptr<uint8_t>(), static_cast<uint64_t>(image.numel()));
    versions.insert(hasher.hex());
  }
  EXPECT_GE(versions.size(), 4u) << "five repeats of one image, each with a crop of its own";
}

TEST(LoaderTest, AnEpochBegunInTheMiddleIsTheRestOfTheWholeOne) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/false);
  for (const int workers : {0, 3}) {
    Loader loader(source, small_plan(), small_settings(workers, 2));
    for (const int64_t from : {0, 1, 5, 6}) {
      loader.begin_epoch(4);
      core::Hasher rest;
      HostBatch batch;
      for (int64_t i = 0; loader.next(batch); ++i) {
        if (i >= from) add_batch(batch, rest);
        loader.release(batch);
      }
      EXPECT_EQ(epoch_digest(loader, 4, from), rest.hex()) << "from batch " << from;
    }
  }
}

TEST(LoaderTest, AnEpochBegunInTheMiddleReadsNothingBeforeIt) {
  std::atomic<int> reads{0};
  const auto source = std::make_shared<MadeSource>(40, false, [&](int64_t) {
    ++reads;
    return "";
  });
  Loader loader(source, small_plan(), small_settings(2, 2));
  epoch_digest(loader, 0, 4);
  EXPECT_EQ(reads.load(), 8);
}

TEST(LoaderTest, ShufflingIsAPermutationAndOtherwiseTheOrderIsTheSources) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/false);
  for (const bool shuffle : {false, true}) {
    LoaderSettings settings = small_settings(3, 2);
    settings.shuffle = shuffle;
    Loader loader(source, small_plan(), settings);
    loader.begin_epoch(0);
    std::vector<int64_t> order;
    for (HostBatch batch; loader.next(batch); loader.release(batch)) {
      for (size_t i = 0; i < batch.samples.size(); ++i) {
        order.push_back(batch.samples[i]);
        EXPECT_EQ(batch.labels.data_ptr<int64_t>()[i], batch.samples[i] % 3);
      }
    }
    EXPECT_EQ(std::is_sorted(order.begin(), order.end()), !shuffle);
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 43u);
  }
}

TEST(LoaderTest, TheLastBatchIsShortOrDropped) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/false);
  LoaderSettings settings = small_settings(2, 2);
  {
    Loader loader(source, small_plan(), settings);
    EXPECT_EQ(loader.batches_per_epoch(), 6);
    EXPECT_EQ(loader.images_per_epoch(), 43);
    EXPECT_EQ(loader.images_in_batch(4), 8);
    EXPECT_EQ(loader.images_in_batch(5), 3);
  }
  settings.drop_last = true;
  Loader loader(source, small_plan(), settings);
  EXPECT_EQ(loader.batches_per_epoch(), 5);
  EXPECT_EQ(loader.images_per_epoch(), 40);
}

TEST(LoaderTest, AnEpochWithoutBatchesIsAnErrorAndNotASuccess) {
  LoaderSettings settings = small_settings(2, 2);
  settings.drop_last = true;
  const core::Error few =
      error_of([&] { Loader loader(std::make_shared<MadeSource>(7, false), small_plan(), settings); });
  EXPECT_EQ(few.kind(), core::ErrorKind::data);
  EXPECT_STREQ(few.what(),
               "7 images are fewer than one batch of 8, and the last short batch is dropped: an epoch "
               "would be empty");
  EXPECT_EQ(few.hint(), "use a smaller --batch-size or --no-drop-last");
  const core::Error none =
      error_of([&] { Loader loader(std::make_shared<MadeSource>(0, false), small_plan(), settings); });
  EXPECT_EQ(none.kind(), core::ErrorKind::data);
  EXPECT_STREQ(none.what(), "the data has 0 images");
}

}  // namespace
}  // namespace stoker::data
