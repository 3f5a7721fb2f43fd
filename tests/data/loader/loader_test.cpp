// SPDX-License-Identifier: Apache-2.0
#include "data/loader/loader.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/system/stop_signal.h"
#include "data/leaf_source.h"
#include "made_data.h"

namespace stoker::data {
namespace {

constexpr int kWorkerCounts[] = {0, 1, 2, 7, 16};
constexpr int kPrefetches[] = {1, 8};

/// Images made on the spot; a hook sees every read and may fail it.
class MadeSource : public LeafSource {
 public:
  using Hook = std::function<std::string(int64_t index)>;

  MadeSource(int64_t size, bool encoded, Hook hook = nullptr) : hook_(std::move(hook)) {
    class_names_ = {"a", "b", "c"};
    for (int64_t i = 0; i < size; ++i) {
      const int width = 20 + static_cast<int>(i * 7 % 31), height = 20 + static_cast<int>(i * 11 % 29);
      Bytes pixels = pattern_pixels(width, height, 3);
      for (uint8_t& value : pixels) value = static_cast<uint8_t>(value + 37 * i);
      widths_.push_back(width);
      heights_.push_back(height);
      contents_.push_back(!encoded     ? pixels
                          : i % 2 == 0 ? jpeg_of(pixels, width, height)
                                       : png_of(pixels, width, height, 3));
    }
    encoded_ = encoded;
  }

  void damage(int64_t index) {
    contents_[static_cast<size_t>(index)].resize(contents_[static_cast<size_t>(index)].size() / 2);
  }

  int64_t size() const override { return static_cast<int64_t>(contents_.size()); }
  int64_t label(int64_t index) const override { return index % 3; }
  std::string name(int64_t index) const override { return core::format("made/{}", index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  std::string read(int64_t index, std::vector<uint8_t>&, SampleContent& content) const override {
    if (hook_) {
      if (std::string cause = hook_(index); !cause.empty()) return cause;
    }
    const auto i = static_cast<size_t>(index);
    content.bytes = contents_[i].data();
    content.size = contents_[i].size();
    if (!encoded_) {
      content.height = heights_[i];
      content.width = widths_[i];
      content.channels = 3;
    }
    return "";
  }

 private:
  std::vector<Bytes> contents_;
  std::vector<int> widths_, heights_;
  bool encoded_ = false;
  Hook hook_;
};

/// The same images with two numbers each: the sample's, and 100 more.
class TargetedSource : public MadeSource {
 public:
  TargetedSource(int64_t size, bool encoded, Hook hook = nullptr) : MadeSource(size, encoded, std::move(hook)) {
    target_names_ = {"number", "hundred"};
  }
  void targets(int64_t index, float* out) const override {
    out[0] = static_cast<float>(index);
    out[1] = static_cast<float>(100 + index);
  }
};

TransformPlan small_plan() {
  TransformPlan plan;
  plan.training = true;
  plan.shape = square_shape(16, 3);
  plan.train_crop = config::TrainCrop::random_resized;
  plan.hflip = 0.5;
  return plan;
}

LoaderSettings small_settings(int64_t workers, int64_t prefetch) {
  LoaderSettings settings;
  settings.batch_size = 8;
  settings.num_workers = workers;
  settings.prefetch_factor = prefetch;
  settings.shuffle = true;
  settings.seed = 42;
  return settings;
}

void add_batch(const HostBatch& batch, core::Hasher& hasher) {
  hasher.add(batch.images.data_ptr<uint8_t>(), static_cast<uint64_t>(batch.images.numel()));
  hasher.add(batch.labels.data_ptr<int64_t>(), static_cast<uint64_t>(batch.labels.numel()) * 8);
  hasher.add(batch.samples.data(), batch.samples.size() * 8);
  hasher.add(&batch.planned_images, 8);
}

/// Digest of everything that the loader hands over in an epoch from `first_batch` on.
std::string epoch_digest(Loader& loader, int64_t epoch, int64_t first_batch = 0) {
  loader.begin_epoch(epoch, first_batch);
  core::Hasher hasher;
  for (HostBatch batch; loader.next(batch);) {
    add_batch(batch, hasher);
    loader.release(batch);
  }
  return hasher.hex();
}

/// Warnings about skipped images are expected here, not worth showing.
struct QuietLog {
  QuietLog() { core::set_console_level(core::LogLevel::error); }
  ~QuietLog() { core::set_console_level(core::LogLevel::info); }
};

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
  options.trivial_augment = true;
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

std::shared_ptr<MadeSource> damaged_source(const std::vector<int64_t>& damaged, MadeSource::Hook hook = nullptr) {
  auto source = std::make_shared<MadeSource>(43, /*encoded=*/true, std::move(hook));
  for (const int64_t index : damaged) source->damage(index);
  return source;
}

TEST(LoaderTest, SkipsBadImagesTheSameWayForAnyNumberOfWorkers) {
  const QuietLog quiet;
  const auto source = damaged_source({3, 17, 18, 40});
  std::set<std::string> digests;
  for (const int workers : kWorkerCounts) {
    for (const int prefetch : kPrefetches) {
      LoaderSettings settings = small_settings(workers, prefetch);
      settings.on_bad_image = config::OnBadImage::skip;
      settings.max_bad = 4;
      Loader loader(source, small_plan(), settings);
      std::string digest = epoch_digest(loader, 0) + epoch_digest(loader, 1) + epoch_digest(loader, 1, 2);
      for (const BadSample& bad : loader.bad_samples()) {
        digest += core::format(" {} {} {}", bad.sample, bad.name, bad.reason);
      }
      digests.insert(digest);
      EXPECT_EQ(loader.bad_samples().size(), 4u);
    }
  }
  EXPECT_EQ(digests.size(), 1u);
}

TEST(LoaderTest, ASkippedImageLeavesNoGap) {
  const QuietLog quiet;
  LoaderSettings settings = small_settings(2, 2);
  settings.shuffle = false;
  settings.on_bad_image = config::OnBadImage::skip;
  settings.max_bad = 9;
  Loader clean_loader(damaged_source({}), small_plan(), settings);
  Loader loader(damaged_source({1, 2, 7}), small_plan(), settings);
  clean_loader.begin_epoch(0);
  loader.begin_epoch(0);
  HostBatch clean, batch;
  ASSERT_TRUE(clean_loader.next(clean));
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.planned_images, 8);
  EXPECT_EQ(batch.samples, std::vector<int64_t>({0, 3, 4, 5, 6}));
  EXPECT_EQ(batch.images.size(0), 5);
  for (int64_t row = 0; row < 5; ++row) {
    const int64_t sample = batch.samples[static_cast<size_t>(row)];
    EXPECT_TRUE(torch::equal(batch.images[row], clean.images[sample]));
    EXPECT_EQ(batch.labels[row].item<int64_t>(), sample % 3);
  }
}

TEST(LoaderTest, ABatchOfBadImagesAloneHasNoRows) {
  const QuietLog quiet;
  LoaderSettings settings = small_settings(2, 2);
  settings.shuffle = false;
  settings.on_bad_image = config::OnBadImage::skip;
  settings.max_bad = 9;
  Loader loader(damaged_source({0, 1, 2, 3, 4, 5, 6, 7}), small_plan(), settings);
  loader.begin_epoch(0);
  HostBatch batch;
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.images.size(0), 0);
  EXPECT_EQ(batch.planned_images, 8);
}

TEST(LoaderTest, FailsWithTheFirstBadImageOfTheStream) {
  std::set<std::string> messages;
  for (const int workers : kWorkerCounts) {
    // The earlier ones of the stream take longest, so that completion and stream disagree.
    const auto source = damaged_source({3, 17, 18, 40}, [](int64_t index) {
      if (index == 3 || index == 40) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return "";
    });
    Loader loader(source, small_plan(), small_settings(workers, 8));
    const core::Error error = error_of([&] { epoch_digest(loader, 0); });
    EXPECT_EQ(error.kind(), core::ErrorKind::data);
    EXPECT_EQ(error.hint(), "repair or remove the file, or go on without such images: --on-bad-image skip --max-bad N");
    messages.insert(error.what());
    EXPECT_STREQ(error_of([&] {
                   HostBatch batch;
                   loader.next(batch);
                 }).what(),
                 error.what())
        << "asked again";
  }
  EXPECT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages.begin()->rfind("bad image made/", 0), 0u) << *messages.begin();
}

TEST(LoaderTest, StopsAfterTooManyBadImagesCountedInTheOrderOfTheStream) {
  const QuietLog quiet;
  std::set<std::string> messages;
  for (const int workers : kWorkerCounts) {
    LoaderSettings settings = small_settings(workers, 8);
    settings.on_bad_image = config::OnBadImage::skip;
    settings.max_bad = 3;
    Loader loader(damaged_source({3, 17, 18, 40}), small_plan(), settings);
    messages.insert(error_of([&] { epoch_digest(loader, 0); }).what());
    EXPECT_EQ(loader.bad_samples().size(), 3u);
  }
  EXPECT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages.begin()->rfind("4 bad images, more than --max-bad 3; the last is made/", 0), 0u);
}

TEST(LoaderTest, KnownBadImagesAreNotReadAgainButStillJudged) {
  const QuietLog quiet;
  std::atomic<int> reads_of_bad{0};
  const auto source = damaged_source({3, 17}, [&](int64_t index) {
    reads_of_bad += index == 3 || index == 17;
    return "";
  });
  LoaderSettings settings = small_settings(2, 2);
  settings.on_bad_image = config::OnBadImage::skip;
  settings.max_bad = 2;
  Loader first(source, small_plan(), settings);
  const std::string expected = epoch_digest(first, 1);
  EXPECT_EQ(reads_of_bad.load(), 2);
  Loader second(source, small_plan(), settings);
  second.restore_bad_samples(first.bad_samples());
  EXPECT_EQ(epoch_digest(second, 1), expected);
  EXPECT_EQ(reads_of_bad.load(), 2);
  EXPECT_EQ(second.bad_samples()[0].reason, first.bad_samples()[0].reason);

  settings.on_bad_image = config::OnBadImage::fail;
  Loader strict(source, small_plan(), settings);
  strict.restore_bad_samples(first.bad_samples());
  EXPECT_EQ(error_of([&] { epoch_digest(strict, 1); }).kind(), core::ErrorKind::data);
}

TEST(LoaderTest, TroubleOfTheStorageIsNeverABadImage) {
  for (const int workers : {0, 2}) {
    const auto source = std::make_shared<MadeSource>(43, false, [](int64_t index) -> std::string {
      if (index == 20) throw core::Error(core::ErrorKind::io, "cannot read made/20: Input/output error (3 attempts)");
      return "";
    });
    LoaderSettings settings = small_settings(workers, 2);
    settings.on_bad_image = config::OnBadImage::skip;
    settings.max_bad = 9;
    Loader loader(source, small_plan(), settings);
    const core::Error error = error_of([&] { epoch_digest(loader, 0); });
    EXPECT_EQ(error.kind(), core::ErrorKind::io);
    EXPECT_STREQ(error.what(), "cannot read made/20: Input/output error (3 attempts)");
    EXPECT_TRUE(loader.bad_samples().empty());
  }
}

TEST(LoaderTest, OtherExceptionsOfWorkersReachTheConsumer) {
  const auto failing = [](const std::function<void()>& fail) {
    const auto source = std::make_shared<MadeSource>(43, false, [fail](int64_t index) {
      if (index == 20) fail();
      return "";
    });
    Loader loader(source, small_plan(), small_settings(2, 2));
    return error_of([&] { epoch_digest(loader, 0); });
  };
  const core::Error bug = failing([] { throw std::out_of_range("oops"); });
  EXPECT_EQ(bug.kind(), core::ErrorKind::bug);
  EXPECT_STREQ(bug.what(), "while decoding made/20: oops");
  EXPECT_EQ(failing([] { throw std::bad_alloc(); }).kind(), core::ErrorKind::out_of_memory);
}

TEST(LoaderTest, ANewEpochDropsWhatWasUnderWay) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/false);
  for (const int workers : {0, 1, 7}) {
    Loader loader(source, small_plan(), small_settings(workers, 2));
    const std::string expected = epoch_digest(loader, 5);
    for (int consumed = 0; consumed < 20; ++consumed) {
      loader.begin_epoch(consumed);
      HostBatch held;
      for (int i = 0; i < consumed % 4; ++i) {
        ASSERT_TRUE(loader.next(held));
        if (i + 1 < consumed % 4) loader.release(held);
      }
      if (consumed % 2 == 0) {
        ASSERT_EQ(epoch_digest(loader, 5), expected);
        loader.release(held);  // of an epoch that is over: nothing happens
      }
    }
  }
}

TEST(LoaderTest, AnEpochThatNobodyFinishesEndsWithinOneSamplePerWorker) {
  // The first eight samples are read at once; the others take until the loader has been told to end, and longer.
  std::atomic<int> reads{0};
  std::atomic<bool> ending{false};
  const auto source = std::make_shared<MadeSource>(400, false, [&](int64_t) {
    if (++reads <= 8) return "";
    while (!ending) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    return "";
  });
  {
    Loader loader(source, small_plan(), small_settings(4, 8));
    loader.begin_epoch(0);
    while (reads.load() < 8 + 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ending = true;
  }
  EXPECT_EQ(reads.load(), 8 + 4);
}

TEST(LoaderTest, AStopRequestEndsTheWaitUnlessTheBatchIsNeeded) {
  std::atomic<bool> blocked{true};
  const auto source = std::make_shared<MadeSource>(43, false, [&](int64_t) {
    while (blocked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return "";
  });
  Loader loader(source, small_plan(), small_settings(2, 2));
  loader.begin_epoch(0);
  core::request_stop(SIGTERM);
  HostBatch batch;
  EXPECT_THROW(loader.next(batch), core::StopRequested);
  std::thread unblock([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    blocked = false;
  });
  EXPECT_TRUE(loader.next(batch, /*may_stop=*/false));
  EXPECT_EQ(batch.images.size(0), 8);
  unblock.join();
  Loader here(source, small_plan(), small_settings(0, 2));
  here.begin_epoch(0);
  EXPECT_THROW(here.next(batch), core::StopRequested);
  EXPECT_TRUE(here.next(batch, /*may_stop=*/false));
  core::request_stop(0);
}

TEST(LoaderTest, WithoutWorkersTheCallingThreadReads) {
  std::mutex mutex;
  std::set<std::thread::id> readers;
  std::set<std::string> names;
  const auto source = std::make_shared<MadeSource>(43, false, [&](int64_t) {
    char name[16] = "";
    ::prctl(PR_GET_NAME, name, 0, 0, 0);
    const std::lock_guard<std::mutex> lock(mutex);
    readers.insert(std::this_thread::get_id());
    names.insert(name);
    return "";
  });
  Loader here(source, small_plan(), small_settings(0, 2));
  epoch_digest(here, 0);
  EXPECT_EQ(readers, std::set<std::thread::id>({std::this_thread::get_id()}));
  readers.clear();
  names.clear();
  Loader loader(source, small_plan(), small_settings(1, 2));
  epoch_digest(loader, 0);
  EXPECT_EQ(readers.count(std::this_thread::get_id()), 0u);
  EXPECT_EQ(names, std::set<std::string>({"loader-0"}));
}

TEST(LoaderTest, MemoryDoesNotGrowWithWorkers) {
  const auto source = std::make_shared<MadeSource>(43, /*encoded=*/false);
  Loader one(source, small_plan(), small_settings(1, 4)), many(source, small_plan(), small_settings(16, 4));
  EXPECT_EQ(one.stats().ring_bytes, 5 * 8 * (16 * 16 * 3 + 8));
  EXPECT_EQ(many.stats().ring_bytes, one.stats().ring_bytes);
  EXPECT_EQ(many.stats().batches_capacity, 5);
  EXPECT_EQ(many.stats().num_workers, 16);
}

TEST(LoaderTest, WorkersFillTheRingAheadAndThenWait) {
  std::atomic<int> reads{0};
  const auto source = std::make_shared<MadeSource>(80, false, [&](int64_t) {
    ++reads;
    return "";
  });
  Loader loader(source, small_plan(), small_settings(2, 3));
  loader.begin_epoch(0);
  while (loader.stats().batches_ready < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which a worker would read on that should wait
  EXPECT_EQ(reads.load(), 4 * 8);
  EXPECT_TRUE(loader.is_ready());
  HostBatch batch;
  loader.next(batch);
  loader.release(batch);
  while (loader.stats().batches_ready < 4) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(reads.load(), 5 * 8);
  EXPECT_EQ(loader.stats().images, 8);
  // What a worker waited for is counted once it runs again.
  while (loader.stats().worker_idle_seconds == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(LoaderTest, TimeIsSplitOverTheStages) {
  Loader files(std::make_shared<MadeSource>(40, /*encoded=*/true), small_plan(), small_settings(1, 2));
  epoch_digest(files, 0);
  EXPECT_GT(files.stats().read_seconds, 0);
  EXPECT_GT(files.stats().decode_seconds, 0);
  EXPECT_GT(files.stats().resize_seconds, 0);
  Loader pixels(std::make_shared<MadeSource>(40, /*encoded=*/false), small_plan(), small_settings(1, 2));
  epoch_digest(pixels, 0);
  EXPECT_EQ(pixels.stats().decode_seconds, 0);
  EXPECT_GT(pixels.stats().resize_seconds, 0);
  EXPECT_EQ(pixels.stats().write_seconds, 0);
  TransformPlan plan = small_plan();
  plan.train_crop = config::TrainCrop::none;
  plan.shape = square_shape(20, 3);
  Loader copies(std::make_shared<MadeSource>(1, /*encoded=*/false), plan, small_settings(1, 2));  // of 20 x 20
  epoch_digest(copies, 0);
  EXPECT_EQ(copies.stats().resize_seconds, 0);
  EXPECT_GT(copies.stats().write_seconds, 0);
}

TEST(LoaderTest, HoldingTooManyBatchesOrReleasingOutOfOrderIsABug) {
  const auto source = std::make_shared<MadeSource>(80, /*encoded=*/false);
  for (const int workers : {0, 2}) {
    Loader loader(source, small_plan(), small_settings(workers, 3));
    loader.begin_epoch(0);
    HostBatch first, second, third, fourth;
    loader.next(first);
    loader.next(second);
    loader.next(third);
    EXPECT_EQ(error_of([&] { loader.next(fourth); }).kind(), core::ErrorKind::bug);
    EXPECT_EQ(error_of([&] { loader.release(second); }).kind(), core::ErrorKind::bug);
    loader.release(first);
    EXPECT_EQ(error_of([&] { loader.release(first); }).kind(), core::ErrorKind::bug);
    EXPECT_TRUE(loader.next(fourth));
  }
}

TEST(LoaderTest, BatchesThatAreHeldKeepTheirPixels) {
  const auto source = std::make_shared<MadeSource>(80, /*encoded=*/false);
  Loader loader(source, small_plan(), small_settings(4, 3));
  loader.begin_epoch(0);
  HostBatch first, second;
  loader.next(first);
  const torch::Tensor before = first.images.clone();
  loader.next(second);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(torch::equal(before, first.images));
}

}  // namespace
}  // namespace stoker::data
