// SPDX-License-Identifier: Apache-2.0
// Visible effects of the cache: a choice with its reason, and the same weights with it or without.
#include <gtest/gtest.h>

#include "program.h"
#include "tiny_data.h"

namespace stoker::cli {
namespace {

std::string printed_row(const Workplace& work, const std::string& option, const Words& more) {
  Words words = train_words(more);
  words.push_back("--print-config");
  const Ended ended = run(words, work.path());
  EXPECT_EQ(ended.exit_code, 0) << story_of(words, ended);
  for (const std::string& line : lines_of(ended.out)) {
    if (line.find(" " + option + ": ") != std::string::npos) return line;
  }
  return "";
}

TEST(CacheTest, TheChoiceIsShownWithItsReason) {
  const Workplace work;
  write_folders(work);
  const std::string row = printed_row(work, "cache", {"--epochs", "2"});
  EXPECT_NE(row.find("cache: ram"), std::string::npos) << row;
  EXPECT_NE(row.find("which the budget of"), std::string::npos) << row;
  const std::string small = printed_row(work, "cache", {"--epochs", "2", "--cache-budget", "100B"});
  EXPECT_NE(small.find("cache: none"), std::string::npos) << small;
  const std::string once = printed_row(work, "cache", {"--epochs", "1"});
  EXPECT_NE(once.find("one epoch reads each image once"), std::string::npos) << once;
}

TEST(CacheTest, DataThatIsPixelsIsNotCached) {
  const Workplace work;
  write_idx(work);
  const std::string row = printed_row(work, "cache", {"--epochs", "2"});
  EXPECT_NE(row.find("cache: none"), std::string::npos) << row;
  EXPECT_NE(row.find("in memory as pixels already"), std::string::npos) << row;
}

TEST(CacheTest, TheWeightsAreTheSameWithAndWithout) {
  const Workplace work;
  write_folders(work);
  std::string weights;
  for (const char* const cache : {"none", "ram", "compressed"}) {
    const Words words = train_words({"--epochs", "3", "--batch-size", "4", "--cache", cache, "--run-dir", cache, "-v"});
    const Ended ended = run(words, work.path());
    ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
    EXPECT_NE(ended.out.find(std::string("cache     training images: ") + cache), std::string::npos)
        << story_of(words, ended);
    const std::string now = content_of_file(work / (std::string(cache) + "/checkpoints/last/model.safetensors"));
    EXPECT_FALSE(now.empty());
    if (weights.empty()) weights = now;
    EXPECT_TRUE(now == weights) << cache;
  }
}

}  // namespace
}  // namespace stoker::cli
