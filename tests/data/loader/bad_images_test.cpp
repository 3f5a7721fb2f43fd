// SPDX-License-Identifier: Apache-2.0
// Samples that cannot be used, and what else goes wrong while they are read.
#include "data/loader/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>

#include "core/format.h"
#include "loader/made_source.h"

namespace stoker::data {
namespace {

using namespace loader_tests;

std::shared_ptr<MadeSource> damaged_source(const std::vector<int64_t>& damaged, MadeSource::Hook hook = nullptr) {
  auto source = std::make_shared<MadeSource>(43, /*encoded=*/true, std::move(hook));
  for (const int64_t index : damaged) source->damage(index);
  return source;
}

TEST(LoaderBadImagesTest, SkipsBadImagesTheSameWayForAnyNumberOfWorkers) {
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

TEST(LoaderBadImagesTest, ASkippedImageLeavesNoGap) {
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

TEST(LoaderBadImagesTest, ABatchOfBadImagesAloneHasNoRows) {
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

TEST(LoaderBadImagesTest, FailsWithTheFirstBadImageOfTheStream) {
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
    EXPECT_EQ(error.hint().rfind("repair or remove the file, or skip such images: --on-bad-image skip", 0), 0u);
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

TEST(LoaderBadImagesTest, StopsAfterTooManyBadImagesCountedInTheOrderOfTheStream) {
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
  EXPECT_EQ(messages.begin()->rfind("4 bad images, more than the 3 of --on-bad-image skip; the last is made/", 0), 0u);
}

TEST(LoaderBadImagesTest, KnownBadImagesAreNotReadAgainButStillJudged) {
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

TEST(LoaderBadImagesTest, AStorageErrorIsNeverABadImage) {
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

TEST(LoaderBadImagesTest, OtherExceptionsOfWorkersReachTheConsumer) {
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

}  // namespace
}  // namespace stoker::data
