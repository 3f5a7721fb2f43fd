// SPDX-License-Identifier: Apache-2.0
// Single operations against torchvision.transforms.functional on PIL images:
// scripts/parity/augment_parity.py.
#include <gtest/gtest.h>

#include <cstdlib>

#include "augment_golden.h"
#include "data/transform/augment.h"
#include "data/transform/augment_colour.h"
#include "data/transform/augment_filter.h"
#include "made_data.h"
#include "named_operation.h"

namespace stoker::data {
namespace {

std::string case_name(const char* operation, const std::vector<double>& numbers) {
  std::string name = operation;
  for (const double number : numbers) name += " " + std::to_string(number);
  return name;
}

Bytes dimmed_pattern(int height, int width, int channels) {
  Bytes pixels = pattern_pixels(width, height, channels);
  for (uint8_t& value : pixels) value = static_cast<uint8_t>(value / 2 + 40);
  return pixels;
}

Bytes applied(const char* operation, const std::vector<double>& numbers, Bytes pixels, int side, int channels) {
  EXPECT_TRUE(apply_named(operation, numbers, {pixels.data(), side, side, channels})) << operation;
  return pixels;
}

TEST(AugmentGoldenTest, TheseOperationsGiveTorchvisionsBytes) {
  for (const GoldenDigest& golden : kGoldenDigests) {
    const Bytes gray = applied(golden.operation, golden.numbers, dimmed_pattern(24, 24, 1), 24, 1);
    const Bytes rgb = applied(golden.operation, golden.numbers, dimmed_pattern(24, 24, 3), 24, 3);
    EXPECT_EQ(byte_digest(gray.data(), gray.size()), golden.gray) << case_name(golden.operation, golden.numbers);
    EXPECT_EQ(byte_digest(rgb.data(), rgb.size()), golden.rgb) << case_name(golden.operation, golden.numbers);
    if (golden.wide == 0) continue;
    Bytes wide = dimmed_pattern(20, 28, 3);
    EXPECT_TRUE(apply_named(golden.operation, golden.numbers, {wide.data(), 20, 28, 3})) << golden.operation;
    EXPECT_EQ(byte_digest(wide.data(), wide.size()), golden.wide)
        << case_name(golden.operation, golden.numbers) << ", 20 high and 28 wide";
  }
}

TEST(AugmentGoldenTest, BilinearMovesAndBlurAreWithinOneOfTorchvisionsBytes) {
  for (const GoldenPixels& golden : kGoldenPixels) {
    const Bytes pixels = applied(golden.operation, golden.numbers, pattern_pixels(12, 12, 1), 12, 1);
    ASSERT_EQ(pixels.size(), golden.gray.size());
    int differing = 0;
    for (size_t i = 0; i < pixels.size(); ++i) {
      EXPECT_LE(std::abs(pixels[i] - golden.gray[i]), 1) << case_name(golden.operation, golden.numbers) << " at " << i;
      differing += pixels[i] != golden.gray[i] ? 1 : 0;
    }
    EXPECT_LE(differing, 14) << case_name(golden.operation, golden.numbers) << ": of 144";
  }
}

TEST(AugmentGoldenTest, AColourImageIsMovedAndBlurredAsItsChannelsAre) {
  for (const GoldenPixels& golden : kGoldenPixels) {
    const Bytes rgb = applied(golden.operation, golden.numbers, pattern_pixels(12, 12, 3), 12, 3);
    const Bytes gray = applied(golden.operation, golden.numbers, pattern_pixels(12, 12, 1), 12, 1);
    for (size_t i = 0; i < gray.size(); ++i) EXPECT_EQ(rgb[3 * i], gray[i]);
  }
}

TEST(AugmentGoldenTest, MagnitudesAreTorchvisions) {
  constexpr int kLevels[] = {1, 9, 15, 30};
  for (const GoldenMagnitudes& golden : kGoldenMagnitudes) {
    const auto operation = static_cast<ImageOperation>(golden.operation);
    const auto space = static_cast<MagnitudeSpace>(golden.space);
    for (size_t i = 0; i < 4; ++i) {
      const double ours = magnitude_of(operation, space, kLevels[i], 224, 224);
      EXPECT_FLOAT_EQ(static_cast<float>(ours), static_cast<float>(golden.at[i]))
          << "operation " << golden.operation << " at level " << kLevels[i];
    }
  }
}

TEST(AugmentGoldenTest, SizesThatFillNoVectorGiveTheSameBytes) {
  // The fast loops work on blocks: whatever the size, a flat image stays flat and a copy stays a copy.
  for (const int side : {1, 2, 3, 5, 31, 33}) {
    for (const int channels : {1, 3}) {
      const Bytes flat(static_cast<size_t>(side * side * channels), 77);
      EXPECT_EQ(applied("blur", {3, 0.9}, flat, side, channels), flat);
      EXPECT_EQ(applied("sharpness", {1.7}, flat, side, channels), flat);
      EXPECT_EQ(applied("saturation", {1.7}, flat, side, channels), flat);
      const Bytes pixels = pattern_pixels(side, side, channels);
      EXPECT_EQ(applied("rotate", {0, 1}, pixels, side, channels), pixels);
      EXPECT_EQ(applied("sharpness", {1}, pixels, side, channels), pixels);
      EXPECT_EQ(applied("saturation", {1}, pixels, side, channels), pixels);
      EXPECT_EQ(applied("blur", {1, 2.0}, pixels, side, channels), pixels);
    }
  }
}

}  // namespace
}  // namespace stoker::data
