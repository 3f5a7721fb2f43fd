// SPDX-License-Identifier: Apache-2.0
// Choices for samples of a fixed size: numbers of HDF5 files.
#include <gtest/gtest.h>

#include "tests/config/resolved_words.h"

namespace stoker::config {
namespace {

using fixtures::facts_of;
using fixtures::failure_of;
using fixtures::reason_of;

DataFacts spectrograms() {
  DataFacts data{2, 1, 64, 80, 1000};
  data.has_fixed_size = true;
  data.input_mean = {-58.1234567};
  data.input_deviation = {9.87654321};
  data.input_samples = 1000;
  return data;
}

Resolution resolved_for(const std::vector<std::string>& words, const DataFacts& data) {
  std::vector<std::string> with_data = {"--data-dir", "/data/sounds"};
  with_data.insert(with_data.end(), words.begin(), words.end());
  core::MachineFacts machine;
  machine.cpus = 2;
  return fixtures::resolved(with_data, facts_of(machine, data));
}

TEST(FixedSizeTest, FloatsAreNormalisedByWhatWasMeasured) {
  const auto c = resolved_for({}, spectrograms());
  EXPECT_EQ(c.options.data.mean, std::vector<double>({-58.1235}));
  EXPECT_EQ(c.options.data.std, std::vector<double>({9.87654}));
  EXPECT_EQ(reason_of(c, "mean"), "measured on 1,000 samples of the training split");
  const auto given = resolved_for({"--mean", "-60", "--std", "8"}, spectrograms());
  EXPECT_EQ(given.options.data.mean, std::vector<double>({-60}));
  EXPECT_EQ(given.options.data.std, std::vector<double>({8}));
}

TEST(FixedSizeTest, ADeviationOfNothingDividesByOne) {
  DataFacts constant = spectrograms();
  constant.input_deviation = {0};
  EXPECT_EQ(resolved_for({}, constant).options.data.std, std::vector<double>({1}));
}

TEST(FixedSizeTest, BytesKeepTheUsualNormalisation) {
  DataFacts bytes = spectrograms();
  bytes.input_mean.clear();
  bytes.input_deviation.clear();
  EXPECT_EQ(resolved_for({}, bytes).options.data.mean, std::vector<double>({0.5}));
}

TEST(FixedSizeTest, NothingIsCroppedOrMirroredUnlessImagesAre) {
  const auto c = resolved_for({}, spectrograms());
  EXPECT_EQ(c.options.augment.train_crop, TrainCrop::none);
  EXPECT_EQ(c.options.augment.hflip, 0);
  EXPECT_EQ(reason_of(c, "hflip"), "samples have a fixed size");
  DataFacts images = spectrograms();
  images.has_fixed_size = false;
  EXPECT_EQ(resolved_for({}, images).options.augment.hflip, 0.5);
}

TEST(FixedSizeTest, WhatChangesImagesIsRefusedAllAtOnce) {
  const auto failure = failure_of([] {
    resolved_for({"--hflip", "0.5", "--tta", "hflip", "--color-jitter", "0.4", "--img-size", "32", "--in-chans", "3"},
                 spectrograms());
  });
  EXPECT_EQ(failure.kind, core::ErrorKind::config);
  for (const char* const part :
       {"\n  hflip is for images", "tta is for images", "color-jitter is for images",
        "img-size is 32, but samples of HDF5 and multi-band files are not resized; they are 64 x 80",
        "in-chans is 3, but the samples have 1"}) {
    EXPECT_NE(failure.message.find(part), std::string::npos) << part << "\n" << failure.message;
  }
  EXPECT_NO_THROW(
      resolved_for({"--freq-mask", "2", "--time-mask", "2", "--mixup", "0.2", "--hflip", "0"}, spectrograms()));
}

TEST(FixedSizeTest, SamplesHaveAnyNumberOfChannelsAndImagesOneOrThree) {
  DataFacts bands = spectrograms();
  bands.channels = 6;
  bands.has_float_samples = false;
  bands.input_mean = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  bands.input_deviation = {0.1, 0.1, 0.1, 0.1, 0.1, 0};
  const auto c = resolved_for({}, bands);
  EXPECT_EQ(c.options.data.in_chans, 6);
  EXPECT_EQ(c.options.data.mean, bands.input_mean);
  EXPECT_EQ(c.options.data.std, std::vector<double>({0.1, 0.1, 0.1, 0.1, 0.1, 1}));
  DataFacts images = bands;
  images.has_fixed_size = false;
  images.channels = 3;
  images.input_mean.clear();
  const auto failure = failure_of([&] { resolved_for({"--in-chans", "6"}, images); });
  EXPECT_NE(failure.message.find("in-chans is 6, but images become gray (1) or RGB (3)"), std::string::npos)
      << failure.message;
}

}  // namespace
}  // namespace stoker::config
