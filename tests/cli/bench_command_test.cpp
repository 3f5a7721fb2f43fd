// SPDX-License-Identifier: Apache-2.0
// `train bench` on a few small images: figures as one JSON object, and what it cannot measure.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tiny_data.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::json;

class BenchCommandTest : public ::testing::Test {
 protected:
  const Workplace work_;
};

TEST_F(BenchCommandTest, TheLoaderIsMeasuredOnLooseImages) {
  for (int i = 0; i < 8; ++i) work_.write("images/" + std::to_string(i) + ".jpg", jpeg_of(16, 12, 90));
  const Words words = {"bench",        "loader", "--json",    "--data-dir", "images",        "--img-size", "8",
                       "--batch-size", "4",      "--threads", "1",          "--num-workers", "1"};
  const Ended ended = run(words, work_.path());
  ASSERT_EQ(ended.exit_code, 0) << story_of(words, ended);
  const Json result = Json::parse(ended.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(result.is_object()) << result;
  EXPECT_EQ(result["images"], 8);
  EXPECT_EQ(result["img_size"], 8);
  EXPECT_GT(result["images_per_second"]["median"], 0);
  EXPECT_GT(result["decode_efficiency_percent"]["median"], 0);
  for (const char* stage : {"read", "decode", "resize", "augment", "write"}) {
    EXPECT_TRUE(result["microseconds_per_sample"][stage].is_number()) << stage;
  }
}

TEST_F(BenchCommandTest, LearningRatesGiveTheSameAnswerEachTime) {
  write_idx(work_);
  const Words words = {
      "bench", "lr",           "--json", "--data-dir",    "data", "--model",       "small_cnn", "--width",
      "8",     "--batch-size", "16",     "--threads",     "1",    "--num-workers", "1",         "--device",
      "cpu",   "--seeds",      "2",      "--max-updates", "20",   "--no-amp"};
  const Ended first = run(words, work_.path()), second = run(words, work_.path());
  ASSERT_EQ(first.exit_code, 0) << story_of(words, first);
  EXPECT_EQ(first.out, second.out);
  const Json result = Json::parse(first.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_EQ(result["rates"].size(), 22u) << result;
  EXPECT_EQ(result["rates"][0]["losses"].size(), 2u);
  EXPECT_NE(result["suggestion"].is_null(), result["obstacle"].is_null());
}

TEST_F(BenchCommandTest, AllOnLooseImagesReportsThatTheyHaveNoLabels) {
  work_.write("images/0.jpg", jpeg_of(16, 12, 90));
  const Words words = {"bench", "all", "--data-dir", "images", "--threads", "1", "--num-workers", "1"};
  const Ended ended = run(words, work_.path());
  EXPECT_EQ(ended.exit_code, 66) << story_of(words, ended);
  EXPECT_NE(ended.err.find("no labels"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace stoker::cli
