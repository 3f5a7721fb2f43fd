// SPDX-License-Identifier: Apache-2.0
// Samples of other than 1 or 3 channels, from the file to the network's input.
#include <gtest/gtest.h>

#include <cmath>

#include "data/feed/normalise.h"
#include "data/open_datasets.h"
#include "data/probe/probe_sizes.h"
#include "made_hdf5.h"

namespace stoker::data {
namespace {

constexpr int64_t kBands = 4, kLines = 5, kDots = 7, kCount = 6, kArea = kLines * kDots;

/// Number c * 50 + sample in every place of channel c.
uint8_t value_of(int64_t sample, int64_t channel) { return static_cast<uint8_t>(channel * 50 + sample); }

class Hdf5ChannelsTest : public ::testing::Test {
 protected:
  Hdf5ChannelsTest() { options_.data_dir = folder_.path(); }

  void write(bool planes) {
    Bytes numbers;
    for (int64_t i = 0; i < kCount * kArea * kBands; ++i) {
      const int64_t within = i % (kArea * kBands);
      numbers.push_back(value_of(i / (kArea * kBands), planes ? within / kArea : within % kBands));
    }
    for (const char* const split : {"train", "val"}) {
      MadeHdf5 file(folder_ / (std::string(split) + ".h5"));
      file.add("x", "uint8",
               planes ? std::vector<int64_t>{kCount, kBands, kLines, kDots}
                      : std::vector<int64_t>{kCount, kLines, kDots, kBands},
               numbers);
      file.add_labels("y", {0, 1, 0, 1, 0, 1});
    }
  }

  TempFolder folder_;
  config::DataOptions options_;
};

TEST_F(Hdf5ChannelsTest, FewerThanRowsAndColumnsAreChannelsInEitherOrder) {
  for (const bool planes : {true, false}) {
    write(planes);
    const auto source = open_datasets(options_).train;
    ASSERT_EQ(source->fixed_shape(), (SampleShape{0, kLines, kDots, kBands, Element::uint8}));
    std::vector<uint8_t> buffer;
    SampleContent content;
    ASSERT_EQ(source->read(2, buffer, content), "");
    for (int64_t i = 0; i < kArea * kBands; ++i) ASSERT_EQ(content.bytes[i], value_of(2, i % kBands)) << planes;
  }
}

TEST_F(Hdf5ChannelsTest, BytesOfOtherChannelsThanImagesAreMeasuredInTheUnitOfPixels) {
  write(true);
  const InputStatistics inputs = measure_inputs(*open_datasets(options_).train);
  ASSERT_EQ(inputs.mean.size(), static_cast<size_t>(kBands));
  for (size_t c = 0; c < inputs.mean.size(); ++c) {
    EXPECT_NEAR(inputs.mean[c], (50.0 * static_cast<double>(c) + 2.5) / 255, 1e-12);
    EXPECT_NEAR(inputs.deviation[c], std::sqrt(35.0 / 12) / 255, 1e-12) << "of 0 to 5";
  }
}

TEST(NormaliseTest, EachOfAnyNumberOfChannelsTakesItsOwnMeanAndDeviation) {
  const std::vector<double> mean = {0, 0.25, 0.5, 0.75}, deviation = {1, 0.5, 0.25, 0.125};
  std::vector<uint8_t> pixels;
  for (int64_t i = 0; i < 2 * kArea * kBands; ++i) pixels.push_back(static_cast<uint8_t>(i));
  std::vector<float> out(pixels.size());
  const NormalTable table = make_normal_table(mean, deviation);
  for (const bool channels_last : {true, false}) {
    normalise(pixels.data(), 2, kArea, kBands, table, channels_last, out.data());
    for (size_t i = 0; i < pixels.size(); ++i) {
      const size_t c = i % kBands, place = i / kBands, image = place / kArea, within = place % kArea;
      const size_t at = channels_last ? i : (image * kBands + c) * kArea + within;
      EXPECT_FLOAT_EQ(out[at], static_cast<float>((pixels[i] / 255.0 - mean[c]) / deviation[c]));
    }
  }
}

}  // namespace
}  // namespace stoker::data
