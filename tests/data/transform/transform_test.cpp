// SPDX-License-Identifier: Apache-2.0
// Golden geometry was computed by an independent implementation of Philox and of torchvision's sampling.
#include "data/transform/transform.h"

#include <gtest/gtest.h>

#include "made_data.h"

namespace stoker::data {
namespace {

TransformPlan training_plan(config::TrainCrop crop, int64_t img_size) {
  TransformPlan plan;
  plan.training = true;
  plan.shape = square_shape(img_size, 3);
  plan.train_crop = crop;
  plan.hflip = 0.5;
  return plan;
}

TransformPlan evaluation_plan(config::EvalCrop crop, int64_t img_size, double crop_pct) {
  TransformPlan plan;
  plan.shape = square_shape(img_size, 3);
  plan.eval_crop = crop;
  plan.crop_pct = crop_pct;
  return plan;
}

struct DrawCase {
  uint64_t seed, epoch, sample;
  int width, height;  // of the source
  int left, top, box_width, box_height;
  bool flip;
};

void expect_draw(const TransformPlan& plan, const DrawCase& c) {
  core::Rng rng(c.seed, core::RngPurpose::augment, c.epoch, c.sample);
  const SampleGeometry drawn = draw_geometry(plan, c.width, c.height, rng);
  EXPECT_EQ(drawn.left, c.left);
  EXPECT_EQ(drawn.top, c.top);
  EXPECT_EQ(drawn.width, c.box_width);
  EXPECT_EQ(drawn.height, c.box_height);
  EXPECT_EQ(drawn.flip, c.flip);
  EXPECT_EQ(drawn.resize_width, plan.shape.width);
  EXPECT_EQ(drawn.resize_height, plan.shape.height);
}

TEST(TransformTest, RandomResizedBoxesAreThoseOfTorchvision) {
  const TransformPlan plan = training_plan(config::TrainCrop::random_resized, 224);
  expect_draw(plan, {42, 0, 0, 500, 375, 5, 24, 346, 317, true});
  expect_draw(plan, {42, 0, 1, 500, 375, 161, 18, 299, 329, false});
  expect_draw(plan, {42, 1, 0, 500, 375, 186, 136, 275, 208, false});
  expect_draw(plan, {7, 3, 123456, 375, 500, 53, 53, 178, 226, false});
}

TEST(TransformTest, ThinImagesFallBackToTheCentreAfterTenTries) {
  const TransformPlan plan = training_plan(config::TrainCrop::random_resized, 224);
  expect_draw(plan, {42, 0, 0, 1000, 20, 486, 0, 27, 20, true});
  expect_draw(plan, {42, 0, 0, 20, 1000, 0, 486, 20, 27, true});
}

TEST(TransformTest, TheTenthTryIsTheLast) {
  const TransformPlan plan = training_plan(config::TrainCrop::random_resized, 224);
  expect_draw(plan, {42, 0, 0, 500, 120, 360, 11, 66, 85, true});    // nine boxes were too high
  expect_draw(plan, {42, 0, 47, 500, 120, 170, 0, 160, 120, true});  // ten were: an eleventh would fit
}

TEST(TransformTest, PaddedCropMovesTheImageByUpToThePadding) {
  TransformPlan plan = training_plan(config::TrainCrop::padded, 28);
  plan.crop_padding = 4;
  expect_draw(plan, {42, 0, 0, 28, 28, 1, 0, 28, 28, true});
  expect_draw(plan, {42, 0, 1, 28, 28, -1, 0, 28, 28, true});
  expect_draw(plan, {42, 5, 59999, 28, 28, -2, 3, 28, 28, false});
}

TEST(TransformTest, CentreCropResizesTheShortSideAndRoundsLikeTorchvision) {
  core::Rng rng(0, core::RngPurpose::augment, 0, 0);
  const TransformPlan plan = evaluation_plan(config::EvalCrop::center, 224, 0.875);
  const SampleGeometry wide = draw_geometry(plan, 500, 375, rng);
  EXPECT_EQ(wide.resize_width, 341);  // int(256 * 500 / 375)
  EXPECT_EQ(wide.resize_height, 256);
  EXPECT_EQ(wide.crop_left, 58);  // round(58.5) is even
  EXPECT_EQ(wide.crop_top, 16);
  EXPECT_FALSE(wide.flip);
  const SampleGeometry tall = draw_geometry(plan, 333, 500, rng);
  EXPECT_EQ(tall.resize_width, 256);
  EXPECT_EQ(tall.resize_height, 384);
  EXPECT_EQ(tall.crop_top, 80);
}

TEST(TransformTest, TenCropsAreThoseOfTorchvision) {
  constexpr int kWidth = 9, kHeight = 7, kSide = 4;
  const Bytes pixels = pattern_pixels(kWidth, kHeight, 3);
  TransformPlan plan = evaluation_plan(config::EvalCrop::center, kSide, static_cast<double>(kSide) / kHeight);
  add_views(config::TestTimeAugmentation::ten_crop, plan);
  ASSERT_EQ(plan.views.size(), 10u);
  EXPECT_EQ(plan.shape.height, 10 * kSide);
  EXPECT_EQ(plan.out_height(), kSide);
  // TenCrop(4): upper left, upper right, lower left, lower right, centre (round half to even); again of the mirrored.
  const std::pair<int, int> corners[] = {{0, 0}, {0, 5}, {3, 0}, {3, 5}, {2, 2}};  // top, left
  TransformScratch scratch;
  for (size_t v = 0; v < 10; ++v) {
    const auto [top, left] = corners[v % 5];
    core::Rng rng(0, core::RngPurpose::augment, 0, 0);
    Bytes row(kSide * kSide * 3), wanted;
    transform_into(pixels.data(), kHeight, kWidth, plan, draw_geometry(plan, kWidth, kHeight, rng, plan.views[v]),
                   scratch, row.data());
    for (int y = top; y < top + kSide; ++y) {
      for (int x = left; x < left + kSide; ++x) {
        const int from = v < 5 ? x : kWidth - 1 - x;
        const auto pixel = pixels.begin() + (y * kWidth + from) * 3;
        wanted.insert(wanted.end(), pixel, pixel + 3);
      }
    }
    EXPECT_EQ(row, wanted) << v;
  }
}

TEST(TransformTest, ScalesCutTheMiddleOutOfLargerImages) {
  TransformPlan plan = evaluation_plan(config::EvalCrop::center, 224, 0.875);
  add_views(config::TestTimeAugmentation::scales, plan);
  std::vector<int> widths, lefts;
  for (const CropView& view : plan.views) {
    core::Rng rng(0, core::RngPurpose::augment, 0, 0);
    const SampleGeometry geometry = draw_geometry(plan, 500, 375, rng, view);
    widths.push_back(geometry.resize_width);
    lefts.push_back(geometry.crop_left);
  }
  EXPECT_EQ(widths, (std::vector<int>{341, 384, 426}));  // short sides 256, 288, 320
  EXPECT_EQ(lefts, (std::vector<int>{58, 80, 101}));
}

TEST(TransformTest, ACentreCropThatIsNotSquareIsThatOfTimm) {
  core::Rng rng(0, core::RngPurpose::augment, 0, 0);
  TransformPlan plan = evaluation_plan(config::EvalCrop::center, 0, 0.875);
  plan.shape = image_shape(96, 320, 3);  // within 109 x 365
  const SampleGeometry wide = draw_geometry(plan, 500, 375, rng);
  EXPECT_EQ(wide.resize_width, 365);
  EXPECT_EQ(wide.resize_height, 274);  // round(375 * 365 / 500 = 273.75), which Resize would round down
  EXPECT_EQ(wide.crop_left, 22);       // round(22.5) is even
  EXPECT_EQ(wide.crop_top, 89);
  const SampleGeometry panorama = draw_geometry(plan, 2000, 300, rng);
  EXPECT_EQ(panorama.resize_width, 727);  // round(2000 * 109 / 300 = 726.67)
  EXPECT_EQ(panorama.resize_height, 109);
}

TEST(TransformTest, WithoutACropTheWholeImageIsSquashed) {
  core::Rng rng(0, core::RngPurpose::augment, 0, 0);
  const SampleGeometry geometry = draw_geometry(evaluation_plan(config::EvalCrop::none, 64, 1), 500, 375, rng);
  EXPECT_EQ(geometry.width, 500);
  EXPECT_EQ(geometry.height, 375);
  EXPECT_EQ(geometry.resize_width, 64);
  EXPECT_EQ(geometry.resize_height, 64);
}

Bytes transformed(const Bytes& pixels, int width, int height, const TransformPlan& plan,
                  const SampleGeometry& geometry) {
  Bytes row(static_cast<size_t>(plan.shape.bytes()));
  TransformScratch scratch;
  transform_into(pixels.data(), height, width, plan, geometry, scratch, row.data());
  return row;
}

TEST(TransformTest, ALetterboxedImageIsThatOfPillowsPad) {
  // byte_digest() of ImageOps.pad(image, (64, 64), BILINEAR), Pillow 9.4
  struct Case {
    int width, height;
    uint32_t digest;
  };
  const TransformPlan evaluation = evaluation_plan(config::EvalCrop::letterbox, 64, 0.875);
  const TransformPlan training = training_plan(config::TrainCrop::letterbox, 64);
  for (const Case& c : {Case{500, 375, 2152032406u}, Case{375, 500, 3873971044u}, Case{333, 500, 284558137u},
                        Case{64, 64, 102039953u}, Case{9, 1, 739441155u}, Case{63, 64, 3944940620u},
                        Case{40, 64, 1426158882u}, Case{64, 1, 2911864736u}, Case{37, 3, 1245963044u}}) {
    core::Rng rng(0, core::RngPurpose::augment, 0, 0);
    const SampleGeometry geometry = draw_geometry(evaluation, c.width, c.height, rng);
    const Bytes pixels = pattern_pixels(c.width, c.height, 3);
    const Bytes row = transformed(pixels, c.width, c.height, evaluation, geometry);
    EXPECT_EQ(byte_digest(row.data(), row.size()), c.digest) << c.width << " x " << c.height;
    SampleGeometry trained = draw_geometry(training, c.width, c.height, rng);
    trained.flip = false;
    EXPECT_EQ(transformed(pixels, c.width, c.height, training, trained), row);
  }
  core::Rng rng(0, core::RngPurpose::augment, 0, 0);
  const SampleGeometry thin = draw_geometry(evaluation, 1, 300, rng);
  EXPECT_EQ(thin.resize_width, 1) << "no image becomes nothing";
}

TEST(TransformTest, PixelsOutsideTheSourceAreZero) {
  TransformPlan plan = training_plan(config::TrainCrop::padded, 2);
  plan.shape.channels = 1;
  SampleGeometry geometry{1, -1, 2, 2, 2, 2, 0, 0, false};
  EXPECT_EQ(transformed({1, 2, 3, 4}, 2, 2, plan, geometry), Bytes({0, 0, 2, 0}));
  geometry.flip = true;
  EXPECT_EQ(transformed({1, 2, 3, 4}, 2, 2, plan, geometry), Bytes({0, 0, 0, 2}));
  geometry = {5, 5, 2, 2, 2, 2, 0, 0, false};  // wholly outside
  EXPECT_EQ(transformed({1, 2, 3, 4}, 2, 2, plan, geometry), Bytes({0, 0, 0, 0}));
}

TEST(TransformTest, SameSizeIsCopiedAndMirrored) {
  const TransformPlan plan = evaluation_plan(config::EvalCrop::none, 2, 1);
  SampleGeometry geometry{0, 0, 2, 2, 2, 2, 0, 0, false};
  const Bytes pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(transformed(pixels, 2, 2, plan, geometry), pixels);
  geometry.flip = true;
  EXPECT_EQ(transformed(pixels, 2, 2, plan, geometry), Bytes({4, 5, 6, 1, 2, 3, 10, 11, 12, 7, 8, 9}));
}

TEST(TransformTest, ACropIsResizedWithoutLookingBesideIt) {
  // The digest is Pillow's of crop().resize().
  const TransformPlan plan = training_plan(config::TrainCrop::random_resized, 224);
  const SampleGeometry geometry{31, 17, 400, 300, 224, 224, 0, 0, false};
  const Bytes row = transformed(pattern_pixels(500, 375, 3), 500, 375, plan, geometry);
  EXPECT_EQ(byte_digest(row.data(), row.size()), 2020014680u);
}

TEST(TransformTest, TheTextNamesEveryStep) {
  TransformPlan plan = training_plan(config::TrainCrop::random_resized, 224);
  EXPECT_EQ(transform_text(plan), "random-resized crop, mirrored 0.5");
  plan.augment.noise_sigma = 0.02;
  plan.train_crop = config::TrainCrop::none;
  EXPECT_EQ(transform_text(plan), "mirrored 0.5, noise 0.02");
  EXPECT_EQ(transform_text(evaluation_plan(config::EvalCrop::center, 224, 0.875)), "none");
}

TEST(TransformTest, AnEvaluationPlanTakesNothingRandom) {
  config::ResolvedDataOptions data;
  data.img_size = {32, 32};
  data.in_chans = 3;
  config::ResolvedAugmentOptions augment;
  augment.crop_pct = 0.9;
  augment.hflip = 1;
  augment.rotate90 = augment.grayscale = augment.random_erasing = 1;
  augment.color_jitter = {0.4};
  const TransformPlan plan = make_transform_plan(data, augment, /*training=*/false);
  EXPECT_FALSE(plan.training);
  EXPECT_FALSE(plan.augment.is_active());
  EXPECT_EQ(plan.crop_pct, 0.9);
  core::Rng rng(1, core::RngPurpose::augment, 0, 0);
  EXPECT_FALSE(draw_geometry(plan, 40, 40, rng).flip);
}

TEST(TransformTest, AMirrorImageHasEachRowFromRightToLeft) {
  for (const int channels : {1, 3}) {
    for (const int side : {1, 7, 8, 9, 16, 28, 31}) {
      std::vector<uint8_t> pixels(static_cast<size_t>(side * side * channels)), mirrored(pixels.size());
      for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7 % 251);
      TransformPlan plan = training_plan(config::TrainCrop::none, side);
      plan.shape = square_shape(side, channels);
      SampleGeometry geometry;
      geometry.width = geometry.height = geometry.resize_width = geometry.resize_height = side;
      geometry.flip = true;
      TransformScratch scratch;
      transform_into(pixels.data(), side, side, plan, geometry, scratch, mirrored.data());
      for (int i = 0; i < side * side; ++i) {
        const int y = i / side, x = i % side, there = y * side + (side - 1 - x);
        for (int c = 0; c < channels; ++c) {
          EXPECT_EQ(mirrored[static_cast<size_t>(i * channels + c)], pixels[static_cast<size_t>(there * channels + c)])
              << side << " px, " << channels << " channels, row " << y << ", column " << x;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stoker::data
