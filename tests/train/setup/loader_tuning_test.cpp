// SPDX-License-Identifier: Apache-2.0
#include "train/setup/loader_tuning.h"

#include <gtest/gtest.h>

#include "data/open_datasets.h"
#include "data/source.h"
#include "tests/config/resolved_words.h"

namespace stoker::train {
namespace {

/// 24-bit BMP files of one size: 54 bytes of header, then pixels.
class Bitmaps : public data::LeafSource, private data::StoredSamples {
 public:
  static constexpr int kSide = 16;

  explicit Bitmaps(int64_t size) : size_(size), file_(54 + 3 * kSide * kSide) {
    const auto put = [&](size_t at, uint8_t value) { file_[at] = value; };
    put(0, 'B');
    put(1, 'M');
    put(10, 54);
    put(14, 40);
    put(18, kSide);
    put(22, kSide);
    put(26, 1);
    put(28, 24);
  }
  int64_t size() const override { return size_; }
  int64_t label(int64_t) const override { return 0; }
  std::string name(int64_t) const override { return "bitmap"; }
  std::string relative_name(int64_t) const override { return "bitmap"; }
  const data::StoredSamples* stored() const override { return this; }
  int64_t stored_bytes(int64_t) const override { return static_cast<int64_t>(file_.size()); }
  std::string read_head(int64_t index, int64_t, std::vector<uint8_t>& buffer,
                        data::SampleContent& content) const override {
    return read(index, buffer, content);
  }
  std::vector<int64_t> run_ends() const override { return {size()}; }
  std::string read(int64_t, std::vector<uint8_t>&, data::SampleContent& content) const override {
    content.bytes = file_.data();
    content.size = file_.size();
    return "";
  }

 private:
  const int64_t size_;
  std::vector<uint8_t> file_;
};

core::MachineFacts machine_with(int64_t free_bytes) {
  core::MachineFacts machine;
  machine.cpus = 2;
  machine.cpus_reason = "2 by affinity";
  machine.ram_available_bytes = free_bytes;
  return machine;
}

const config::DataFacts kSmall{2, 3, Bitmaps::kSide, Bitmaps::kSide, 300};

/// A command line with settings for machine and data.
struct Case {
  std::unique_ptr<config::Configuration> given;
  std::unique_ptr<Settings> settings;

  const config::ResolvedOptions& options() const { return settings->options(); }
  std::string reason_of(const std::string& option) const { return fixtures::reason_of(settings->resolution(), option); }
};

Case case_of(std::vector<std::string> words, const core::MachineFacts& machine) {
  words.insert(words.begin(), {"--data-dir", "x", "--device", "cpu"});
  Case made;
  made.given = fixtures::parsed(words);
  made.settings = std::make_unique<Settings>(*made.given, machine);
  made.settings->learn(&config::Facts::data, kSmall);
  return made;
}

data::Datasets bitmaps(int64_t train, int64_t val) {
  data::Datasets datasets;
  datasets.train = std::make_shared<Bitmaps>(train);
  datasets.val = std::make_shared<Bitmaps>(val);
  return datasets;
}

TEST(FeedingTest, TheBudgetIsHalfOfWhatTheBatchesLeave) {
  const core::MachineFacts machine = machine_with(1'000'000'000);
  const auto c = case_of({"--batch-size", "64", "--val-batch-size", "64", "--prefetch-factor", "4"}, machine);
  data::Datasets datasets = bitmaps(300, 100);
  add_caches(*c.settings, machine, datasets, batch_buffer_bytes(c.options(), *datasets.train));
  // 5 slabs of 128 images of 16 x 16 x 3 bytes are 0.49 MB.
  EXPECT_EQ(c.options().loader.cache_budget, 499'000'000);
  EXPECT_EQ(c.reason_of("cache-budget"), "half of 1.0 GB free less 491.5 kB for the rest of the run");
  EXPECT_EQ(c.options().loader.cache, config::CacheTier::ram);
  const auto alone = case_of({"--batch-size", "64", "--val-batch-size", "64", "--num-workers", "0"}, machine);
  EXPECT_EQ(batch_buffer_bytes(alone.options(), *datasets.train), 4 * 128 * 16 * 16 * 3)
      << "without workers no buffer is filled ahead";
  const core::MachineFacts full = machine_with(1000);
  const auto none = case_of({}, full);
  add_caches(*none.settings, full, datasets, batch_buffer_bytes(none.options(), *datasets.train));
  EXPECT_EQ(none.options().loader.cache_budget, 0);
  EXPECT_EQ(none.options().loader.cache, config::CacheTier::none);
}

TEST(FeedingTest, TrainingIsCachedFirstAndValidationWhereItFitsAsWell) {
  const core::MachineFacts machine = machine_with(1'000'000'000);
  // A bitmap takes 768 bytes as pixels, 832 as stored (a whole number of cache lines), and 13 of bookkeeping.
  const auto c = case_of({"--cache-budget", "300KB"}, machine);
  data::Datasets datasets = bitmaps(300, 100);
  const auto val = datasets.val;
  const std::vector<std::string> lines = add_caches(*c.settings, machine, datasets, 0).lines;
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "training images: ram, 234.3 kB when full");
  EXPECT_EQ(lines[1].rfind("validation images: none, the pixels, about 76.8 kB, exceed the budget of 65.7 kB", 0), 0u)
      << lines[1];
  EXPECT_EQ(datasets.val, val) << "no cache, no decorator";

  const auto asked = case_of({"--cache-budget", "100KB", "--cache", "ram"}, machine);
  data::Datasets others = bitmaps(300, 100);
  EXPECT_EQ(add_caches(*asked.settings, machine, others, 0).lines[0],
            "training images: ram, 100.0 kB when full: 128 of 300 as pixels, 0 as stored");
}

TEST(FeedingTest, WhatIsReadOnceIsNotCachedUnlessAskedFor) {
  const core::MachineFacts machine = machine_with(1'000'000'000);
  data::Datasets datasets = bitmaps(300, 100);
  EXPECT_EQ(add_caches(*case_of({"--epochs", "1"}, machine).settings, machine, datasets, 0).lines[0],
            "training images: none, one epoch reads each image once");
  EXPECT_EQ(add_caches(*case_of({"--epochs", "1", "--cache", "ram"}, machine).settings, machine, datasets, 0).lines[0],
            "training images: ram, 234.3 kB when full");
}

TEST(FeedingTest, WorkersAreMeasuredUnlessTheyWereGiven) {
  const core::MachineFacts machine = machine_with(1'000'000'000);
  const Bitmaps source(300);
  const auto given = case_of({"--num-workers", "7"}, machine);
  measure_workers(*given.settings, source);
  EXPECT_EQ(given.options().loader.num_workers, 7);

  const auto measured = case_of({}, machine);
  measure_workers(*measured.settings, source);
  const std::string reason = measured.reason_of("num-workers");
  EXPECT_NE(reason.find(" images/s with 1, "), std::string::npos) << reason;
  EXPECT_NE(reason.find(" with 2; 2 by affinity"), std::string::npos) << reason;

  const auto few = case_of({}, machine);
  measure_workers(*few.settings, Bitmaps(100));
  EXPECT_EQ(few.reason_of("num-workers").find("images/s"), std::string::npos);
  EXPECT_EQ(few.options().loader.num_workers, 2);
}

}  // namespace
}  // namespace stoker::train
