// SPDX-License-Identifier: Apache-2.0
#include "data/probe/probe_sizes.h"

#include <gtest/gtest.h>

#include <set>

#include "core/system/stop_signal.h"
#include "data/source.h"
#include "made_data.h"

namespace stoker::data {
namespace {

/// Samples in memory: files, pixels where `pixels` are given, or unreadable ones. Notes which are read.
class MadeSamples : public LeafSource {
 public:
  int64_t size() const override { return size_; }
  int64_t label(int64_t) const override { return 0; }
  std::string name(int64_t index) const override { return "sample#" + std::to_string(index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  std::string read(int64_t index, std::vector<uint8_t>&, SampleContent& content) const override {
    read_.insert(index);
    const Bytes& file = files_[static_cast<size_t>(index) % files_.size()];
    if (file.empty()) return "torn in two";
    content.bytes = file.data();
    content.size = file.size();
    return "";
  }

  std::vector<Bytes> files_;  ///< over and over; an empty one is unreadable
  int64_t size_ = 0;
  mutable std::set<int64_t> read_;
};

Bytes image(int width, int height, int channels) {
  return png_of(pattern_pixels(width, height, channels), width, height, channels);
}

MadeSamples made_of(const std::vector<Bytes>& files) {
  MadeSamples samples;
  samples.files_ = files;
  samples.size_ = static_cast<int64_t>(files.size());
  return samples;
}

TEST(ProbeSizesTest, GivesTheMedianOfEachSideByItself) {
  const SizeProbe probe = probe_sizes(made_of({image(10, 60, 3), image(30, 20, 3), image(50, 40, 3)}), 64);
  EXPECT_EQ(probe.median_width, 30);
  EXPECT_EQ(probe.median_height, 40);
}

TEST(ProbeSizesTest, ChannelsAreThoseOfTheMajorityAndColourWhereThereIsNone) {
  const Bytes gray = image(4, 4, 1), colour = image(4, 4, 3);
  EXPECT_EQ(probe_sizes(made_of({gray, colour, gray}), 64).channels, 1);
  EXPECT_EQ(probe_sizes(made_of({gray, colour, colour}), 64).channels, 3);
  EXPECT_EQ(probe_sizes(made_of({gray, colour}), 64).channels, 3);
}

TEST(ProbeSizesTest, UnreadableAndDamagedSamplesAreIgnored) {
  const SizeProbe probe = probe_sizes(made_of({{}, {'n', 'o', 'n', 'e'}, image(8, 6, 1)}), 64);
  EXPECT_EQ(probe.channels, 1);
  EXPECT_EQ(probe.median_width, 8);
  EXPECT_EQ(probe.median_height, 6);
}

TEST(ProbeSizesTest, WhereNoneCanBeReadTheFirstIsNamedWithItsCause) {
  const core::Error error = error_of([&] { probe_sizes(made_of({{}, {'n', 'o', 'n', 'e'}}), 64); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_STREQ(error.what(), "none of 2 images that were looked at can be read; the first is sample#0: torn in two");
}

TEST(ProbeSizesTest, ImagesBeyondTheLimitAreNotImages) {
  const MadeSamples samples = made_of({image(200, 100, 3)});
  EXPECT_EQ(probe_sizes(samples, 0.02).median_width, 200) << "20,000 pixels are allowed";
  EXPECT_EQ(error_of([&] { probe_sizes(samples, 0.019); }).kind(), core::ErrorKind::data);
}

TEST(ProbeSizesTest, LooksAtAHundredSamplesSpreadOverTheWholeSource) {
  MadeSamples samples = made_of({image(4, 4, 3)});
  samples.size_ = 1000;
  probe_sizes(samples, 64);
  EXPECT_EQ(samples.read_.size(), 100u);
  EXPECT_EQ(*samples.read_.begin(), 0);
  EXPECT_EQ(*samples.read_.rbegin(), 990);
  EXPECT_EQ(samples.read_.count(10), 1u);
}

TEST(ProbeSizesTest, AStopRequestEndsIt) {
  core::request_stop(15);
  EXPECT_THROW(probe_sizes(made_of({image(4, 4, 3)}), 64), core::StopRequested);
  core::request_stop(0);
}

}  // namespace
}  // namespace stoker::data
