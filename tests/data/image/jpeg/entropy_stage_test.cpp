// SPDX-License-Identifier: Apache-2.0
// The self-test of our Huffman stage: it passes with the library of this build, and a stage that gives other pixels is
// not used, with one warning.
#include "data/image/jpeg/entropy_stage.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/log.h"
#include "data/image/jpeg/jpeg_decode.h"
#include "made_data.h"

namespace stoker::data {
namespace {

std::string decode(const Bytes& jpeg, Region& wanted, ImageBuffer& out, EntropyStage stage) {
  return decode_jpeg(jpeg.data(), jpeg.size(), 3, {}, wanted, out, stage);
}

/// The effect of a wrong layout of libjpeg's structures: blocks beyond the first column stay zero, without an error.
std::string decode_gray(const Bytes& jpeg, Region& wanted, ImageBuffer& out, EntropyStage stage) {
  std::string reason = decode(jpeg, wanted, out, stage);
  for (int y = 0; y < out.height && stage == EntropyStage::own; ++y) {
    const int64_t row = int64_t{y} * out.width * 3;
    std::fill(out.pixels.begin() + row + std::min(out.width, 16) * 3, out.pixels.begin() + row + out.width * 3, 128);
  }
  return reason;
}

/// Gives up wherever columns are left out.
std::string decode_whole_only(const Bytes& jpeg, Region& wanted, ImageBuffer& out, EntropyStage stage) {
  if (stage == EntropyStage::own && wanted.width < 48) return "not decoded";
  return decode(jpeg, wanted, out, stage);
}

class LoggedWarnings {
 public:
  LoggedWarnings() {
    core::set_console_writer([this](core::LogLevel level, std::string_view line) {
      if (level == core::LogLevel::warning) lines.emplace_back(line);
    });
  }
  ~LoggedWarnings() { core::set_console_writer(nullptr); }
  LoggedWarnings& operator=(LoggedWarnings&&) = delete;  // not copied, not moved
  std::vector<std::string> lines;
};

TEST(EntropyStageTest, OursPassesItsSelfTestWithTheLibraryOfThisBuild) {
  EXPECT_EQ(difference_of_stages(decode), "");
  LoggedWarnings warnings;
  EXPECT_EQ(EntropyStageChoice(decode).get(), EntropyStage::own);
  EXPECT_TRUE(warnings.lines.empty());
}

TEST(EntropyStageTest, TheSelfTestSeesEachKindOfDifference) {
  EXPECT_EQ(difference_of_stages(decode_gray), "48x16, 4:2:0, whole");
  EXPECT_EQ(difference_of_stages(decode_whole_only), "48x16, 4:2:0, right");
  const auto only_full_colour = [](const Bytes& jpeg, Region& wanted, ImageBuffer& out, EntropyStage stage) {
    const bool is_middle = wanted.left == 24;
    std::string reason = decode(jpeg, wanted, out, stage);
    // At 4:4:4 blocks on both sides of the middle are left out.
    if (stage == EntropyStage::own && is_middle && out.width == 24) out.pixels[0] ^= 1;
    return reason;
  };
  EXPECT_EQ(difference_of_stages(only_full_colour), "48x16, 4:4:4, middle");
}

TEST(EntropyStageTest, AStageThatGivesOtherPixelsIsNotUsedAndOneWarningIsPrinted) {
  LoggedWarnings warnings;
  std::atomic<int> decodes{0};
  EntropyStageChoice choice([&](const Bytes& jpeg, Region& wanted, ImageBuffer& out, EntropyStage stage) {
    ++decodes;
    return decode_gray(jpeg, wanted, out, stage);
  });
  std::vector<std::thread> threads;
  std::atomic<int> with_libjpeg{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10; ++k) with_libjpeg += choice.get() == EntropyStage::libjpeg ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(with_libjpeg, 40);
  EXPECT_EQ(decodes, 2) << "one self-test, which ends at the first difference";
  ASSERT_EQ(warnings.lines.size(), 1u);
  EXPECT_NE(warnings.lines[0].find("self-test (48x16, 4:2:0, whole): this process decodes with libjpeg's"),
            std::string::npos)
      << warnings.lines[0];
}

}  // namespace
}  // namespace stoker::data
