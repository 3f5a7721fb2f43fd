// SPDX-License-Identifier: Apache-2.0
#include "data/cache/cached_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "core/format.h"
#include "core/hash.h"
#include "core/log.h"
#include "data/dataset/file_source.h"
#include "data/loader/loader.h"
#include "made_data.h"

namespace stoker::data {
namespace {

using config::CacheTier;

constexpr int kCrews[] = {0, 1, 2, 7, 16};

/// Files of every kind in a folder, as a source.
class ManyKindsOfFiles {
 public:
  ManyKindsOfFiles() {
    for (int i = 0; i < 3; ++i) {
      const int width = 40 + 7 * i, height = 33 + 11 * i;
      const Bytes rgb = pattern_pixels(width, height, 3), gray = pattern_pixels(width, height, 1);
      const Bytes rgba = pattern_pixels(width, height, 4);
      const auto jpeg = [&](JpegRecipe recipe) { return jpeg_of(rgb, width, height, recipe); };
      write(core::format("{}_420.jpg", i), jpeg({}));
      write(core::format("{}_422.jpg", i), jpeg({3, false, false, 90, 2, 1}));
      write(core::format("{}_444.jpg", i), jpeg({3, false, false, 90, 1, 1}));
      write(core::format("{}_progressive.jpg", i), jpeg({3, true}));
      write(core::format("{}_turned.jpg", i), jpeg_with_exif(jpeg({}), 6));
      write(core::format("{}_gray.jpg", i), jpeg_of(gray, width, height, {1}));
      write(core::format("{}_cmyk.jpg", i), jpeg_of(rgba, width, height, {4, false, true}));
      write(core::format("{}.png", i), png_of(rgba, width, height, 4));
      write(core::format("{}.bmp", i), bmp_of(rgb, width, height, 3));
      write(core::format("{}.webp", i), webp_of(rgb, width, height, 3));
    }
  }

  std::string write(const std::string& name, const Bytes& content) {
    names_.insert(name);
    return folder_.write(name, content);
  }
  /// A file that is not an image, one that is cut short, and one whose lower part is damaged, so that it depends
  /// on the crop whether anyone notices.
  void add_bad_ones() {
    write("a_text.jpg", {'h', 'e', 'l', 'l', 'o'});
    Bytes cut = jpeg_of(pattern_pixels(64, 64, 3), 64, 64);
    cut.resize(cut.size() / 2);
    write("b_cut.jpg", cut);
    cut.push_back(0xFF);
    cut.push_back(0xD9);
    for (int i = 0; i < 8; ++i) write(core::format("c_ends_early_{}.jpg", i), cut);
  }
  std::string path(const std::string& name) const { return folder_ / name; }
  void remove_all() const {
    for (const std::string& name : names_) std::filesystem::remove(folder_ / name);
  }

  std::shared_ptr<const Source> source() const {
    FileList files(folder_.path());
    for (const std::string& name : names_) {
      struct stat info {};
      EXPECT_EQ(::stat((folder_ / name).c_str(), &info), 0);
      files.add(name, files.size() % 3,
                {info.st_size, int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec});
    }
    return make_file_source(std::move(files), {"a", "b", "c"});
  }

 private:
  TempFolder folder_;
  std::set<std::string> names_;
};

CacheSettings cache_of(CacheTier tier, int64_t budget_bytes) {
  CacheSettings settings;
  settings.tier = tier;
  settings.budget_bytes = budget_bytes;
  settings.scan_threads = 3;
  return settings;
}

std::shared_ptr<const Source> cached(const std::shared_ptr<const Source>& source, const CacheSettings& settings) {
  return make_cached_source(source, plan_cache(source, settings), settings);
}

constexpr int64_t kPlenty = 1 << 30;

/// Every tier, and budgets that part of the samples fit in.
std::vector<CacheSettings> every_tier() {
  return {cache_of(CacheTier::none, kPlenty), cache_of(CacheTier::ram, kPlenty), cache_of(CacheTier::ram, 60'000),
          cache_of(CacheTier::compressed, kPlenty), cache_of(CacheTier::compressed, 20'000)};
}

TransformPlan random_crops() {
  TransformPlan plan;
  plan.training = true;
  plan.shape = square_shape(16, 3);
  plan.train_crop = config::TrainCrop::random_resized;
  plan.hflip = 0.5;
  return plan;
}

LoaderSettings shuffled(int64_t workers) {
  LoaderSettings settings;
  settings.batch_size = 7;
  settings.num_workers = workers;
  settings.prefetch_factor = 2;
  settings.shuffle = true;
  settings.seed = 42;
  return settings;
}

/// Digest of `epochs` epochs: pixels, labels and which samples.
std::string stream_digest(Loader& loader, int epochs) {
  core::Hasher hasher;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    loader.begin_epoch(epoch);
    for (HostBatch batch; loader.next(batch);) {
      hasher.add(batch.images.data_ptr<uint8_t>(), static_cast<uint64_t>(batch.images.numel()));
      hasher.add(batch.labels.data_ptr<int64_t>(), static_cast<uint64_t>(batch.labels.numel()) * 8);
      hasher.add(batch.samples.data(), batch.samples.size() * 8);
      loader.release(batch);
    }
  }
  return hasher.hex();
}

std::string digest_of(const SampleContent& content) {
  core::Hasher hasher;
  hasher.add(content.bytes, content.size);
  return hasher.hex() + core::format(" {}x{}x{}", content.height, content.width, content.channels);
}

TEST(CachedSourceTest, TheStreamIsTheSameFromEveryTierForAnyNumberOfWorkers) {
  const ManyKindsOfFiles files;
  std::set<std::string> digests;
  for (const CacheSettings& settings : every_tier()) {
    for (const int workers : kCrews) {
      Loader loader(cached(files.source(), settings), random_crops(), shuffled(workers));
      digests.insert(stream_digest(loader, 3));
    }
  }
  EXPECT_EQ(digests.size(), 1u);
}

TEST(CachedSourceTest, BadImagesAreTheSameOnesForTheSameReasonsFromEveryTier) {
  ManyKindsOfFiles files;
  files.add_bad_ones();
  core::set_console_level(core::LogLevel::error);
  std::set<std::string> outcomes;
  for (const CacheSettings& settings : every_tier()) {
    for (const int workers : kCrews) {
      LoaderSettings skipping = shuffled(workers);
      skipping.on_bad_image = config::OnBadImage::skip;
      skipping.max_bad = 100;
      Loader loader(cached(files.source(), settings), random_crops(), skipping);
      std::string outcome = stream_digest(loader, 3);
      // Paths name a folder of their own for each run of the test, but not within it.
      for (const BadSample& bad : loader.bad_samples()) outcome += "\n" + bad.name + ": " + bad.reason;
      outcomes.insert(outcome);

      Loader strict(cached(files.source(), settings), random_crops(), shuffled(workers));
      outcomes.insert(outcome + error_of([&] { stream_digest(strict, 3); }).what());
    }
  }
  core::set_console_level(core::LogLevel::info);
  EXPECT_EQ(outcomes.size(), 2u) << *outcomes.begin();
  EXPECT_NE(outcomes.begin()->find("c_ends_early"), std::string::npos) << "else the damage was never met";
}

TEST(CachedSourceTest, CachedSamplesNeedNoFiles) {
  for (const CacheTier tier : {CacheTier::ram, CacheTier::compressed}) {
    const ManyKindsOfFiles files;
    const auto source = cached(files.source(), cache_of(tier, kPlenty));
    EXPECT_EQ(source->memory().cached_bytes, 0);
    Loader loader(source, random_crops(), shuffled(3));
    const std::string before = stream_digest(loader, 2);
    files.remove_all();
    EXPECT_EQ(stream_digest(loader, 2), before);
    EXPECT_GT(loader.stats().cache_bytes, 0);
    EXPECT_EQ(loader.stats().cache_bytes, source->memory().cached_bytes);
  }
}

TEST(CachedSourceTest, MemoryHoldsWhatDecodingTheWholeImageGives) {
  const ManyKindsOfFiles files;
  const auto plain = files.source();
  for (const int channels : {1, 3}) {
    CacheSettings settings = cache_of(CacheTier::ram, kPlenty);
    settings.channels = channels;
    const auto source = cached(plain, settings);
    std::vector<uint8_t> buffer;
    for (int64_t i = 0; i < source->size(); ++i) {
      SampleContent encoded, pixels;
      ImageBuffer image;
      ASSERT_EQ(plain->read(i, buffer, encoded), "");
      ASSERT_EQ(decode_image(encoded.bytes, encoded.size, channels, {}, image), "");
      const std::string expected =
          digest_of({image.pixels.data(), uint64_t(image.height) * uint64_t(image.width) * uint64_t(channels),
                     image.height, image.width, channels});
      for (int use = 0; use < 2; ++use) {
        ASSERT_EQ(source->read(i, buffer, pixels = {}), "");
        EXPECT_EQ(digest_of(pixels), expected) << source->name(i) << " use " << use;
        EXPECT_EQ(pixels.decode_nanoseconds > 0, use == 0) << "the first use decodes";
      }
    }
  }
}

TEST(CachedSourceTest, WhatIsCachedStaysWhenTheFileChangesAndWhatIsNotIsBad) {
  for (const CacheTier tier : {CacheTier::ram, CacheTier::compressed}) {
    ManyKindsOfFiles files;
    const auto source = cached(files.source(), cache_of(tier, kPlenty));
    std::vector<uint8_t> buffer;
    SampleContent before, after;
    ASSERT_EQ(source->read(0, buffer, before), "");
    const std::string expected = digest_of(before);
    files.write("0.bmp", {1, 2, 3});      // sample 0, cached
    files.write("0_420.jpg", {1, 2, 3});  // not used yet
    EXPECT_EQ(source->read(0, buffer, after), "");
    EXPECT_EQ(digest_of(after), expected);
    bool found = false;
    for (int64_t i = 0; i < source->size(); ++i) {
      if (source->relative_name(i) != "0_420.jpg") continue;
      found = true;
      EXPECT_EQ(source->read(i, buffer, after), "it has changed since the scan");
    }
    EXPECT_TRUE(found);
  }
}

TEST(CachedSourceTest, AReadThatFailedIsTriedAgain) {
  ManyKindsOfFiles files;
  const auto source = cached(files.source(), cache_of(CacheTier::ram, kPlenty));
  const std::string hidden = files.path("hidden");
  std::vector<uint8_t> buffer;
  SampleContent content;
  std::filesystem::rename(source->name(0), hidden);
  EXPECT_NE(source->read(0, buffer, content), "");
  std::filesystem::rename(hidden, source->name(0));
  EXPECT_EQ(source->read(0, buffer, content), "");
  EXPECT_TRUE(content.is_pixels());
}

TEST(CachedSourceTest, ThreadsThatMeetAtOneSampleAllGetIt) {
  const ManyKindsOfFiles files;
  const auto plain = files.source();
  const auto source = cached(plain, cache_of(CacheTier::compressed, kPlenty));
  std::vector<uint8_t> buffer;
  SampleContent content;
  ASSERT_EQ(plain->read(0, buffer, content), "");
  const std::string expected = digest_of(content);
  std::atomic<int> equal{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      std::vector<uint8_t> own_buffer;
      SampleContent own;
      equal += source->read(0, own_buffer, own).empty() && digest_of(own) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 8);
}

TEST(CachePlanTest, NeverPlansForMoreThanTheBudget) {
  const auto source = ManyKindsOfFiles().source();  // the files are gone: sizes of bytes are known, headers are not
  const ManyKindsOfFiles files;
  for (int64_t budget = 0; budget < 300'000; budget += 7'919) {
    for (const CacheTier tier : {CacheTier::ram, CacheTier::compressed}) {
      const CachePlan plan = plan_cache(files.source(), cache_of(tier, budget));
      EXPECT_LE(plan.planned_bytes(), budget);
      const auto cache = make_cached_source(files.source(), plan, cache_of(tier, budget));
      std::vector<uint8_t> buffer;
      SampleContent content;
      for (int64_t i = 0; i < cache->size(); ++i) EXPECT_EQ(cache->read(i, buffer, content = {}), "");
      EXPECT_LE(cache->memory().cached_bytes, budget);
    }
  }
  EXPECT_EQ(plan_cache(source, cache_of(CacheTier::ram, kPlenty)).memory_bytes(), 0);
}

TEST(CachePlanTest, WhatDoesNotFitAsPixelsIsHeldAsStoredAndTheRestNotAtAll) {
  const ManyKindsOfFiles files;
  const auto source = files.source();
  const int64_t all = plan_cache(source, cache_of(CacheTier::ram, kPlenty)).planned_bytes();
  bool mixed = false;
  for (int64_t budget = all / 4; budget < all; budget += all / 40) {
    const CachePlan plan = plan_cache(source, cache_of(CacheTier::ram, budget));
    EXPECT_GT(plan.pixel_samples, 0);
    EXPECT_LT(plan.pixel_samples, source->size());
    mixed = mixed || plan.byte_samples > 0;
    const CachePlan again = plan_cache(source, cache_of(CacheTier::ram, budget));
    EXPECT_EQ(again.offsets, plan.offsets);
  }
  EXPECT_TRUE(mixed);
}

TEST(CachePlanTest, WithoutATierTheFastestThatHoldsAllIsTaken) {
  const ManyKindsOfFiles files;
  const auto source = files.source();
  const int64_t pixels = plan_cache(source, cache_of(CacheTier::ram, kPlenty)).planned_bytes();
  const int64_t stored = plan_cache(source, cache_of(CacheTier::compressed, kPlenty)).planned_bytes();
  ASSERT_LT(stored, pixels);
  const auto chosen = [&](int64_t budget) {
    CacheSettings settings = cache_of(CacheTier::none, budget);
    settings.tier.reset();
    CachePlan plan = plan_cache(source, settings);
    EXPECT_EQ(plan.held(), plan.tier == CacheTier::none ? 0 : source->size()) << "all or nothing";
    EXPECT_FALSE(plan.reason.empty());
    return plan.tier;
  };
  EXPECT_EQ(chosen(pixels), CacheTier::ram);
  EXPECT_EQ(chosen(pixels - 1), CacheTier::compressed);
  EXPECT_EQ(chosen(stored), CacheTier::compressed);
  EXPECT_EQ(chosen(stored - 1), CacheTier::none);
  EXPECT_EQ(chosen(0), CacheTier::none);
}

}  // namespace
}  // namespace stoker::data
