// SPDX-License-Identifier: Apache-2.0
#include "data/transform/augment.h"

#include <c10/util/Half.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "made_data.h"

namespace stoker::data {
namespace {

core::Rng any_rng(uint64_t sample) { return {7, core::RngPurpose::time_mask, 0, sample}; }

TEST(SpecAugmentTest, BandsLieInsideAndAreNarrowerThanTheirParameter) {
  double widths = 0;
  std::set<int64_t> sizes, begins;
  constexpr int kDraws = 4000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    core::Rng rng = any_rng(i);
    const MaskBand band = draw_band(/*param=*/8, /*side=*/20, rng);
    ASSERT_GE(band.begin, 0);
    ASSERT_LE(band.begin + band.size, 20);
    sizes.insert(band.size);
    begins.insert(band.begin);
    widths += static_cast<double>(band.size);
  }
  EXPECT_EQ(sizes, std::set<int64_t>({0, 1, 2, 3, 4, 5, 6, 7})) << "all widths below 8, and no other";
  EXPECT_EQ(*begins.begin(), 0);
  EXPECT_EQ(*begins.rbegin(), 19);
  EXPECT_NEAR(widths / kDraws, 3.5, 0.15);
}

TEST(SpecAugmentTest, AParameterBeyondTheSideIsTheSide) {
  for (uint64_t i = 0; i < 500; ++i) {
    core::Rng rng = any_rng(i);
    const MaskBand band = draw_band(100, 5, rng);
    ASSERT_LT(band.size, 5);
    ASSERT_LE(band.begin + band.size, 5);
  }
}

config::ResolvedAugmentOptions options_of(int64_t freq_masks, int64_t time_masks) {
  config::ResolvedAugmentOptions options;
  options.freq_masks = freq_masks;
  options.freq_mask_param = 6;
  options.time_masks = time_masks;
  options.time_mask_param = 9;
  return options;
}

/// The bands that the definition gives for this sample.
std::vector<MaskBand> bands(core::RngPurpose purpose, const SampleKey& key, int64_t masks, int64_t param,
                            int64_t side) {
  core::Rng rng(key.seed, purpose, key.epoch, key.sample);
  std::vector<MaskBand> drawn;
  for (int64_t i = 0; i < masks; ++i) drawn.push_back(draw_band(param, side, rng));
  return drawn;
}

bool covers(const std::vector<MaskBand>& drawn, int64_t at) {
  for (const MaskBand& band : drawn) {
    if (at >= band.begin && at < band.begin + band.size) return true;
  }
  return false;
}

TEST(SpecAugmentTest, ExactlyTheDrawnRowsAndColumnsHoldTheMean) {
  const SampleShape shape{0, 16, 24, 1, Element::float32};
  const MaskPlan plan = make_mask_plan(options_of(2, 2), {-3.5}, shape);
  int64_t blanked = 0;
  for (uint64_t sample = 0; sample < 50; ++sample) {
    const SampleKey key{42, 3, sample};
    std::vector<float> row(16 * 24);
    for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i);
    mask_spectrogram(plan, key, shape, reinterpret_cast<uint8_t*>(row.data()));
    const auto freq = bands(core::RngPurpose::frequency_mask, key, 2, 6, 16);
    const auto time = bands(core::RngPurpose::time_mask, key, 2, 9, 24);
    for (int64_t y = 0; y < 16; ++y) {
      for (int64_t x = 0; x < 24; ++x) {
        const bool is_blank = covers(freq, y) || covers(time, x);
        blanked += is_blank ? 1 : 0;
        ASSERT_EQ(row[static_cast<size_t>(y * 24 + x)], is_blank ? -3.5F : static_cast<float>(y * 24 + x))
            << y << " " << x;
      }
    }
  }
  EXPECT_GT(blanked, 50 * 16 * 24 / 10);
}

TEST(SpecAugmentTest, TheSameKeyBlanksTheSameAndAnotherEpochOthers) {
  const SampleShape shape{0, 16, 24, 1, Element::uint8};
  const MaskPlan plan = make_mask_plan(options_of(2, 2), {0.5}, shape);
  const auto masked = [&](uint64_t epoch) {
    Bytes row(16 * 24, 9);
    mask_spectrogram(plan, {42, epoch, 5}, shape, row.data());
    return row;
  };
  EXPECT_EQ(masked(0), masked(0));
  EXPECT_NE(masked(0), masked(1));
}

TEST(SpecAugmentTest, TheFillIsTheMeanOfEveryElement) {
  EXPECT_EQ(make_mask_plan(options_of(1, 0), {0.2, 0.4, 0.6}, {0, 4, 4, 3, Element::uint8}).fill,
            Bytes({51, 102, 153}));
  const MaskPlan half = make_mask_plan(options_of(1, 0), {-1.5}, {0, 4, 4, 1, Element::float16});
  c10::Half value;
  ASSERT_EQ(half.fill.size(), sizeof value);
  std::memcpy(&value, half.fill.data(), sizeof value);
  EXPECT_EQ(static_cast<float>(value), -1.5F);
}

TEST(SpecAugmentTest, FramesOfAClipAreBlankedAlike) {
  const SampleShape clip{3, 16, 24, 3, Element::uint8};
  const MaskPlan plan = make_mask_plan(options_of(2, 2), {0.2, 0.4, 0.6}, clip);
  Bytes row(static_cast<size_t>(clip.bytes()), 9);
  mask_spectrogram(plan, {42, 0, 1}, clip, row.data());
  const auto frame = static_cast<std::ptrdiff_t>(clip.image_bytes());
  EXPECT_EQ(Bytes(row.begin(), row.begin() + frame), Bytes(row.begin() + frame, row.begin() + 2 * frame));
  EXPECT_EQ(Bytes(row.begin(), row.begin() + frame), Bytes(row.begin() + 2 * frame, row.end()));
  EXPECT_NE(Bytes(row.begin(), row.begin() + frame), Bytes(static_cast<size_t>(frame), 9));
}

TEST(SpecAugmentTest, WithoutMasksThereIsNothingToDoAndNothingToPrint) {
  const MaskPlan plan = make_mask_plan(options_of(0, 0), {0.5}, {0, 4, 4, 1, Element::uint8});
  EXPECT_FALSE(plan.is_active());
  EXPECT_EQ(masks_text(plan), "");
  EXPECT_EQ(masks_text(make_mask_plan(options_of(1, 2), {0.5}, {0, 4, 4, 1, Element::uint8})),
            "1 frequency mask below 6, 2 time masks below 9");
}

}  // namespace
}  // namespace stoker::data
