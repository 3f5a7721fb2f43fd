// SPDX-License-Identifier: Apache-2.0
#include "app/setup/loader_tuning.h"

#include <gtest/gtest.h>

#include "data/leaf_source.h"
#include "data/open_datasets.h"
#include "tests/config/command_words.h"

namespace stoker::app {
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

std::unique_ptr<config::Configuration> resolved(std::vector<std::string> words, const core::MachineFacts& machine) {
  words.insert(words.begin(), {"--data-dir", "x", "--device", "cpu"});
  auto configuration = fixtures::parsed(words);
  config::resolve_machine(*configuration, machine);
  config::resolve_data(*configuration, kSmall);
  return configuration;
}

data::Datasets bitmaps(int64_t train, int64_t val) {
  data::Datasets datasets;
  datasets.train = std::make_shared<Bitmaps>(train);
  datasets.val = std::make_shared<Bitmaps>(val);
  return datasets;
}

TEST(FeedingTest, TheBudgetIsHalfOfWhatTheBatchesLeave) {
  const core::MachineFacts machine = machine_with(1'000'000'000);
  const auto c = resolved({"--batch-size", "64", "--val-batch-size", "64", "--prefetch-factor", "4"}, machine);
  data::Datasets datasets = bitmaps(300, 100);
  add_caches(*c, machine, datasets, batch_buffer_bytes(c->options, *datasets.train));
  // 5 slabs of 128 images of 16 x 16 x 3 bytes are 0.49 MB.
  EXPECT_EQ(c->options.loader.cache_budget.value(), 499'000'000);
  EXPECT_EQ(c->table.find("cache-budget")->origin.detail, "half of 1.0 GB free less 491.5 kB for the rest of the run");
  EXPECT_EQ(c->options.loader.cache.value(), config::CacheTier::ram);
  const auto alone = resolved({"--batch-size", "64", "--val-batch-size", "64", "--num-workers", "0"}, machine);
  EXPECT_EQ(batch_buffer_bytes(alone->options, *datasets.train), 4 * 128 * 16 * 16 * 3)
      << "without workers no buffer is filled ahead";
  const core::MachineFacts full = machine_with(1000);
  const auto none = resolved({}, full);
  add_caches(*none, full, datasets, batch_buffer_bytes(none->options, *datasets.train));
  EXPECT_EQ(none->options.loader.cache_budget.value(), 0);
  EXPECT_EQ(none->options.loader.cache.value(), config::CacheTier::none);
}

TEST(FeedingTest, TrainingIsCachedFirstAndValidationWhereItFitsAsWell) {
  const core::MachineFacts machine = machine_with(1'000'000'000);
  // A bitmap takes 768 bytes as pixels, 832 as stored (a whole number of cache lines), and 13 of bookkeeping.
  const auto c = resolved({"--cache-budget", "300KB"}, machine);
  data::Datasets datasets = bitmaps(300, 100);
  const auto val = datasets.val;
  const std::vector<std::string> lines = add_caches(*c, machine, datasets, 0).lines;
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "training images: ram, 234.3 kB when full");
  EXPECT_EQ(lines[1].rfind("validation images: none, the pixels, about 76.8 kB, exceed the budget of 65.7 kB", 0), 0u)
      << lines[1];
  EXPECT_EQ(datasets.val, val) << "no cache, no decorator";

  const auto asked = resolved({"--cache-budget", "100KB", "--cache", "ram"}, machine);
  data::Datasets others = bitmaps(300, 100);
  EXPECT_EQ(add_caches(*asked, machine, others, 0).lines[0],
            "training images: ram, 100.0 kB when full: 128 of 300 as pixels, 0 as stored");
}

TEST(FeedingTest, WhatIsReadOnceIsNotCachedUnlessAskedFor) {
  const core::MachineFacts machine = machine_with(1'000'000'000);
  data::Datasets datasets = bitmaps(300, 100);
  EXPECT_EQ(add_caches(*resolved({"--epochs", "1"}, machine), machine, datasets, 0).lines[0],
            "training images: none, one epoch reads each image once");
  EXPECT_EQ(add_caches(*resolved({"--epochs", "1", "--cache", "ram"}, machine), machine, datasets, 0).lines[0],
            "training images: ram, 234.3 kB when full");
}

TEST(FeedingTest, WorkersAreMeasuredUnlessTheyWereGiven) {
  const core::MachineFacts machine = machine_with(1'000'000'000);
  const Bitmaps source(300);
  const auto given = resolved({"--num-workers", "7"}, machine);
  measure_workers(*given, machine, kSmall, source);
  EXPECT_EQ(given->options.loader.num_workers.value(), 7);

  const auto measured = resolved({}, machine);
  measure_workers(*measured, machine, kSmall, source);
  const std::string reason = measured->table.find("num-workers")->origin.detail;
  EXPECT_NE(reason.find(" images/s with 1, "), std::string::npos) << reason;
  EXPECT_NE(reason.find(" with 2; 2 by affinity"), std::string::npos) << reason;

  const auto few = resolved({}, machine);
  measure_workers(*few, machine, kSmall, Bitmaps(100));
  EXPECT_EQ(few->table.find("num-workers")->origin.detail.find("images/s"), std::string::npos);
  EXPECT_EQ(few->options.loader.num_workers.value(), 2);
}

}  // namespace
}  // namespace stoker::app
