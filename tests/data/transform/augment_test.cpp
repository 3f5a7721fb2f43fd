// SPDX-License-Identifier: Apache-2.0
// The chain: what is drawn, in which order, and that no draw depends on another operation.
#include "data/transform/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "made_data.h"

namespace stoker::data {
namespace {

constexpr int kSide = 32;

/// One plan per operation, each with nothing else on.
std::vector<std::pair<std::string, AugmentPlan>> single_plans() {
  std::vector<std::pair<std::string, AugmentPlan>> plans(9);
  plans[0].first = "quarter turns";
  plans[0].second.rotate90 = 0.9;
  plans[1].first = "rotation";
  plans[1].second.rotation_degrees = 30;
  plans[2].first = "RandAugment";
  plans[2].second.rand_augment_operations = 2;
  plans[2].second.rand_augment_level = 9;
  plans[3].first = "TrivialAugment";
  plans[3].second.policy = config::AugmentPolicy::ta_wide;
  plans[4].first = "colour jitter";
  plans[4].second.brightness = plans[4].second.contrast = plans[4].second.saturation = 0.4;
  plans[4].second.hue = 0.1;
  plans[5].first = "grayscale";
  plans[5].second.grayscale = 0.5;
  plans[6].first = "blur";
  plans[6].second.blur = 0.9;
  plans[6].second.blur_kernel = 5;
  plans[6].second.blur_sigma_min = 0.1;
  plans[6].second.blur_sigma_max = 2;
  plans[7].first = "noise";
  plans[7].second.noise_sigma = 0.05;
  plans[7].second.noise = std::make_shared<const NoiseTable>(make_noise_table(0.05));
  plans[8].first = "erasing";
  plans[8].second.erasing = 0.9;
  plans[8].second.erased_value = {124, 116, 104};
  return plans;
}

AugmentPlan everything() {
  AugmentPlan plan;
  plan.rotate90 = 0.9;
  plan.rotation_degrees = 30;
  plan.rand_augment_operations = 2;
  plan.rand_augment_level = 9;
  plan.policy = config::AugmentPolicy::ta_wide;
  plan.brightness = plan.contrast = plan.saturation = 0.4;
  plan.hue = 0.1;
  plan.grayscale = 0.5;
  plan.blur = 0.9;
  plan.blur_kernel = 5;
  plan.blur_sigma_min = 0.1;
  plan.blur_sigma_max = 2;
  plan.noise_sigma = 0.05;
  plan.noise = std::make_shared<const NoiseTable>(make_noise_table(0.05));
  plan.erasing = 0.9;
  plan.erased_value = {124, 116, 104};
  return plan;
}

/// Flips, moves, views and policies, in the order of the chain.
std::vector<std::pair<std::string, AugmentPlan>> geometric_plans(config::AugmentPolicy policy) {
  std::vector<std::pair<std::string, AugmentPlan>> plans(5);
  plans[0].first = "vertical flip";
  plans[0].second.vflip = 0.5;
  plans[1].first = "quarter turns";
  plans[1].second.rotate90 = 0.9;
  plans[2].first = "affine move";
  plans[2].second.is_affine = true;
  plans[2].second.rotation_degrees = 20;
  plans[2].second.shift = 0.2;
  plans[2].second.scale_min = 0.7;
  plans[2].second.scale_max = 1.4;
  plans[2].second.shear = 10;
  plans[3].first = "perspective";
  plans[3].second.perspective = 0.9;
  plans[3].second.distortion = 0.5;
  plans[4].first = "policy";
  plans[4].second.policy = policy;
  return plans;
}

AugmentPlan all_geometric(config::AugmentPolicy policy) {
  AugmentPlan plan = geometric_plans(policy)[2].second;
  plan.vflip = 0.5;
  plan.rotate90 = plan.perspective = 0.9;
  plan.distortion = 0.5;
  plan.policy = policy;
  return plan;
}

Bytes augmented(const AugmentPlan& plan, const SampleKey& key, Bytes pixels, int channels) {
  AugmentScratch scratch;
  augment(plan, key, {pixels.data(), kSide, kSide, channels}, scratch);
  return pixels;
}

Bytes original(int channels) { return pattern_pixels(kSide, kSide, channels); }

TEST(AugmentTest, AnEmptyPlanDoesNothing) {
  EXPECT_FALSE(AugmentPlan().is_active());
  EXPECT_EQ(chain_text(AugmentPlan()), "");
  EXPECT_EQ(augmented(AugmentPlan(), {1, 2, 3}, original(3), 3), original(3));
}

TEST(AugmentTest, EachOperationChangesImagesByItself) {
  for (const auto& [name, plan] : single_plans()) {
    EXPECT_TRUE(plan.is_active()) << name;
    EXPECT_NE(chain_text(plan), "") << name;
    int changed = 0;
    for (uint64_t sample = 0; sample < 10; ++sample) {
      changed += augmented(plan, {42, 0, sample}, original(3), 3) != original(3) ? 1 : 0;
    }
    EXPECT_GE(changed, 3) << name;
  }
}

TEST(AugmentTest, SwitchingAnOperationOnMovesNoDrawOfTheOthers) {
  // All at once are the single ones one after another: none of them shares its numbers with another.
  for (uint64_t sample = 0; sample < 20; ++sample) {
    const SampleKey key{42, 3, sample};
    Bytes pixels = original(3);
    for (const auto& [name, plan] : single_plans()) pixels = augmented(plan, key, pixels, 3);
    EXPECT_EQ(augmented(everything(), key, original(3), 3), pixels) << "sample " << sample;
  }
}

TEST(AugmentTest, FlipsMovesViewsAndPoliciesChangeImagesAndMoveNoDrawOfTheOthers) {
  using Policy = config::AugmentPolicy;
  for (const auto& [policy, digest] :
       {std::pair(Policy::aug_mix, 451865588u), std::pair(Policy::three_augment, 3258050241u)}) {
    Bytes all;
    std::vector<int> changed(geometric_plans(policy).size());
    for (uint64_t sample = 0; sample < 20; ++sample) {
      const SampleKey key{42, 3, sample};
      Bytes pixels = original(3);
      for (size_t i = 0; i < changed.size(); ++i) {
        const AugmentPlan plan = geometric_plans(policy)[i].second;
        changed[i] += augmented(plan, key, original(3), 3) != original(3) ? 1 : 0;
        pixels = augmented(plan, key, pixels, 3);
      }
      EXPECT_EQ(augmented(all_geometric(policy), key, original(3), 3), pixels) << "sample " << sample;
      all.insert(all.end(), pixels.begin(), pixels.end());
    }
    for (size_t i = 0; i < changed.size(); ++i) EXPECT_GE(changed[i], 5) << geometric_plans(policy)[i].first;
    EXPECT_EQ(byte_digest(all.data(), all.size()), digest) << "part of the format of a run";
  }
}

TEST(AugmentTest, AugMixMixesTheImageWithWeakVariantsOfItself) {
  AugmentPlan plan;
  plan.policy = config::AugmentPolicy::aug_mix;
  EXPECT_EQ(augmented(plan, {42, 0, 1}, flat_pixels(kSide, kSide, {0}), 1), flat_pixels(kSide, kSide, {0}));
  const Bytes whole = original(1);
  double nearest = 255, farthest = 0;
  for (uint64_t sample = 0; sample < 200; ++sample) {
    const Bytes pixels = augmented(plan, {42, 0, sample}, whole, 1);
    double difference = 0;
    for (size_t i = 0; i < pixels.size(); ++i) difference += std::abs(pixels[i] - whole[i]);
    difference /= static_cast<double>(pixels.size());
    nearest = std::min(nearest, difference);
    farthest = std::max(farthest, difference);
  }
  EXPECT_LT(nearest, 3) << "the image itself has most of the weight";
  EXPECT_GT(farthest, 25) << "and hardly any";
}

TEST(AugmentTest, JitterAndNoiseTouchTheirShareOfTheImages) {
  AugmentPlan jitter, noise;
  jitter.brightness = 0.9;
  noise.noise_sigma = 0.2;
  noise.noise = std::make_shared<const NoiseTable>(make_noise_table(0.2));
  for (const bool jitters : {true, false}) {
    AugmentPlan plan = jitters ? jitter : noise;
    const Bytes always = augmented(plan, {42, 0, 0}, original(3), 3);
    double& probability = jitters ? plan.jitter : plan.noise_probability;
    probability = 0.3;
    int changed = 0;
    for (uint64_t sample = 0; sample < 500; ++sample) {
      changed += augmented(plan, {42, 0, sample}, original(3), 3) != original(3) ? 1 : 0;
    }
    EXPECT_NEAR(changed, 150, 45);
    EXPECT_NE(chain_text(plan).find(" of 0.3 of the images"), std::string::npos) << chain_text(plan);
    probability = 0;
    EXPECT_FALSE(plan.is_active());
    probability = 1;
    EXPECT_EQ(augmented(plan, {42, 0, 0}, original(3), 3), always) << "1 draws nothing";
  }
}

TEST(AugmentTest, TheResultIsAFunctionOfSeedEpochAndSample) {
  const AugmentPlan plan = everything();
  const Bytes pixels = augmented(plan, {42, 3, 7}, original(3), 3);
  EXPECT_EQ(augmented(plan, {42, 3, 7}, original(3), 3), pixels);
  EXPECT_NE(augmented(plan, {43, 3, 7}, original(3), 3), pixels);
  EXPECT_NE(augmented(plan, {42, 4, 7}, original(3), 3), pixels);
  EXPECT_NE(augmented(plan, {42, 3, 8}, original(3), 3), pixels);
}

TEST(AugmentTest, TheChainIsPartOfTheFormatOfARun) {
  // Changes when an operation, its draws or the order change: runs of an older version can then not be
  // resumed exactly.
  for (const auto& [channels, digest] : {std::pair(1, 1154208890u), std::pair(3, 196111930u)}) {
    Bytes all;
    for (uint64_t sample = 0; sample < 20; ++sample) {
      const Bytes pixels = augmented(everything(), {42, 1, sample}, original(channels), channels);
      all.insert(all.end(), pixels.begin(), pixels.end());
    }
    EXPECT_EQ(byte_digest(all.data(), all.size()), digest) << channels << " channels";
  }
}

TEST(AugmentTest, TheScratchOfAWorkerIsTakenOnce) {
  AugmentScratch scratch;
  Bytes pixels = original(3);
  AugmentPlan plan = everything();
  plan.rotate90 = plan.blur = 1;
  plan.blur_sigma_min = plan.blur_sigma_max;
  augment(plan, {42, 0, 0}, {pixels.data(), kSide, kSide, 3}, scratch);
  const uint8_t* const copy = scratch.copy.data();
  const uint16_t* const narrowed = scratch.blur.narrowed.data();
  const uint8_t* const padded = scratch.blur.padded.data();
  for (uint64_t sample = 1; sample < 20; ++sample) {
    augment(plan, {42, 0, sample}, {pixels.data(), kSide, kSide, 3}, scratch);
    EXPECT_EQ(scratch.copy.data(), copy);
    EXPECT_EQ(scratch.blur.narrowed.data(), narrowed);
    EXPECT_EQ(scratch.blur.padded.data(), padded);
  }
}

TEST(AugmentTest, ProbabilitiesAreSharesOfImages) {
  AugmentPlan gray, turned, erased, blurred;
  gray.grayscale = turned.rotate90 = erased.erasing = blurred.blur = 0.25;
  blurred.blur_kernel = 3;
  blurred.blur_sigma_min = blurred.blur_sigma_max = 1;
  for (const AugmentPlan& plan : {gray, turned, erased, blurred}) {
    int changed = 0;
    for (uint64_t sample = 0; sample < 1000; ++sample) {
      changed += augmented(plan, {1, 0, sample}, original(3), 3) != original(3) ? 1 : 0;
    }
    EXPECT_NEAR(changed, 250, 45) << chain_text(plan);
  }
}

TEST(AugmentTest, GrayImagesAreVariedWithoutColours) {
  AugmentPlan colours;
  colours.saturation = 0.9;
  colours.hue = 0.5;
  colours.grayscale = 1;
  for (uint64_t sample = 0; sample < 10; ++sample) {
    EXPECT_EQ(augmented(colours, {42, 0, sample}, original(1), 1), original(1));
  }
}

TEST(AugmentTest, GrayscaleLeavesNoColour) {
  AugmentPlan plan;
  plan.grayscale = 1;
  const Bytes pixels = augmented(plan, {42, 0, 0}, original(3), 3);
  for (size_t i = 0; i < pixels.size(); i += 3) {
    EXPECT_TRUE(pixels[i] == pixels[i + 1] && pixels[i] == pixels[i + 2]);
  }
}

struct ErasedBox {
  int left = kSide, top = kSide, right = 0, bottom = 0;
  int area = 0;
};

/// Where a flat gray image of 7 became 99.
ErasedBox erased_box(uint64_t sample) {
  AugmentPlan plan;
  plan.erasing = 1;
  plan.erased_value = {99, 0, 0};
  const Bytes pixels = augmented(plan, {42, 0, sample}, flat_pixels(kSide, kSide, {7}), 1);
  ErasedBox box;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      if (pixels[static_cast<size_t>(y * kSide + x)] != 99) continue;
      box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x + 1), std::max(box.bottom, y + 1),
             box.area + 1};
    }
  }
  return box;
}

TEST(AugmentTest, ErasingReplacesOneBoxOfTorchvisionsSizes) {
  double smallest = 1, largest = 0, tallest = 0, widest = 0;
  for (uint64_t sample = 0; sample < 400; ++sample) {
    const ErasedBox box = erased_box(sample);
    if (box.area == 0) continue;  // ten boxes did not fit
    const int width = box.right - box.left, height = box.bottom - box.top;
    EXPECT_EQ(width * height, box.area);
    const double share = static_cast<double>(box.area) / (kSide * kSide);
    smallest = std::min(smallest, share);
    largest = std::max(largest, share);
    tallest = std::max(tallest, static_cast<double>(height) / width);
    widest = std::max(widest, static_cast<double>(width) / height);
  }
  EXPECT_NEAR(smallest, 0.02, 0.01);
  EXPECT_NEAR(largest, 0.33, 0.03);
  EXPECT_NEAR(tallest, 3.3, 0.7);
  EXPECT_NEAR(widest, 1 / 0.3, 0.7);
}

TEST(AugmentTest, NoiseIsNormalWithTheDeviationThatWasAskedFor) {
  for (const double sigma : {0.002, 0.02, 0.1}) {
    const NoiseTable table = make_noise_table(sigma);
    ASSERT_EQ(table.size(), 65536u);
    Bytes pixels = flat_pixels(256, 256, {128, 128, 128});
    add_noise({pixels.data(), 256, 256, 3}, table, 12345);
    double sum = 0, squares = 0, within = 0;
    for (const uint8_t value : pixels) {
      const double noise = value - 128.0;
      sum += noise;
      squares += noise * noise;
      within += std::abs(noise) <= 255 * sigma ? 1 : 0;
    }
    const auto count = static_cast<double>(pixels.size());
    EXPECT_NEAR(sum / count, 0, 0.01 * 255 * sigma + 0.002) << sigma;
    const double wanted = std::sqrt(255 * sigma * 255 * sigma + 1.0 / 12);  // rounding adds its own
    EXPECT_NEAR(std::sqrt(squares / count), wanted, 0.02 * wanted) << sigma;
    if (sigma == 0.1) {
      EXPECT_NEAR(within / count, 0.683, 0.015);
    }
  }
}

TEST(AugmentTest, NoiseIsCutOffAtBlackAndWhite) {
  Bytes pixels = flat_pixels(kSide, kSide, {0});
  const NoiseTable table = make_noise_table(0.3);
  add_noise({pixels.data(), kSide, kSide, 1}, table, 1);
  EXPECT_EQ(*std::min_element(pixels.begin(), pixels.end()), 0);
  EXPECT_GT(*std::max_element(pixels.begin(), pixels.end()), 80);
  const auto black = static_cast<double>(std::count(pixels.begin(), pixels.end(), 0));
  EXPECT_NEAR(black / (kSide * kSide), 0.5, 0.06);
}

TEST(AugmentTest, JitterDrawsFactorsFromTorchvisionsRanges) {
  AugmentPlan plan;
  plan.brightness = 0.4;
  double smallest = 10, largest = 0;
  for (uint64_t sample = 0; sample < 500; ++sample) {
    const double factor = augmented(plan, {5, 0, sample}, flat_pixels(kSide, kSide, {100}), 1)[0] / 100.0;
    smallest = std::min(smallest, factor);
    largest = std::max(largest, factor);
  }
  EXPECT_NEAR(smallest, 0.6, 0.01);
  EXPECT_NEAR(largest, 1.4, 0.02);
}

TEST(AugmentTest, JitterAppliesItsStepsInEveryOrder) {
  // Contrast 0 to 2 of a flat image does nothing, unless brightness was cut off at white before it.
  AugmentPlan both;
  both.brightness = both.contrast = 1;
  AugmentPlan brightness = both, contrast = both;
  brightness.contrast = 0;
  contrast.brightness = 0;
  int brightness_first = 0, contrast_first = 0;
  for (uint64_t sample = 0; sample < 200; ++sample) {
    const SampleKey key{9, 0, sample};
    const Bytes together = augmented(both, key, original(1), 1);
    brightness_first += together == augmented(contrast, key, augmented(brightness, key, original(1), 1), 1) ? 1 : 0;
    contrast_first += together == augmented(brightness, key, augmented(contrast, key, original(1), 1), 1) ? 1 : 0;
  }
  EXPECT_GT(brightness_first, 60);
  EXPECT_GT(contrast_first, 60);
  EXPECT_GE(brightness_first + contrast_first, 200);
}

TEST(AugmentTest, OptionsBecomeThePlan) {
  config::ResolvedDataOptions data;
  data.mean = {0.485, 0.456, 0.406};
  config::ResolvedAugmentOptions options;
  options.color_jitter = {0.4};
  options.rand_augment = {2, 9};
  options.random_erasing = 0.25;
  options.augment_interpolation = config::AugmentInterpolation::nearest;
  AugmentPlan plan = make_augment_plan(data, options);
  EXPECT_EQ(plan.brightness, 0.4);
  EXPECT_EQ(plan.contrast, 0.4);
  EXPECT_EQ(plan.saturation, 0.4);
  EXPECT_EQ(plan.hue, 0);
  EXPECT_EQ(plan.interpolation, Interpolation::nearest);
  EXPECT_EQ(plan.erased_value, (std::array<uint8_t, 3>{124, 116, 104}));
  EXPECT_EQ(chain_text(plan), "RandAugment 2 x 9, colour jitter 0.4,0.4,0.4,0, random erasing 0.25");
  options.color_jitter = {0.4, 0.3, 0.2, 0.1};
  plan = make_augment_plan(data, options);
  EXPECT_EQ(plan.saturation, 0.2);
  EXPECT_EQ(plan.hue, 0.1);
}

}  // namespace
}  // namespace stoker::data
