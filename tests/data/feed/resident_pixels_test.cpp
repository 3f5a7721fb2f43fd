// SPDX-License-Identifier: Apache-2.0
// Batches cut out of pixels that stay on the device, against those that the loader makes: the same bits.
#include "data/feed/resident_pixels.h"

#include <gtest/gtest.h>

#include <functional>

#include "data/feed/device_feed.h"
#include "data/source.h"
#include "made_data.h"

namespace stoker::data {
namespace {

constexpr int64_t kEqualImages = 37;

/// Images of one size, as pixels or as PNG files.
class EqualImages : public LeafSource {
 public:
  EqualImages(int side, int channels, bool encoded) : side_(side), channels_(channels), encoded_(encoded) {
    class_names_ = {"a", "b", "c"};
    target_names_ = {"x", "y", "z"};
    core::Rng rng(5, core::RngPurpose::init, 0, 0);
    for (int64_t i = 0; i < kEqualImages; ++i) {
      Bytes pixels(static_cast<size_t>(side * side * channels));
      for (uint8_t& value : pixels) value = static_cast<uint8_t>(rng.below(256));
      contents_.push_back(encoded ? png_of(pixels, side, side, channels) : pixels);
    }
  }
  int64_t size() const override { return kEqualImages; }
  int64_t label(int64_t index) const override { return index % 3; }
  void targets(int64_t index, float* out) const override {
    for (int i = 0; i < 3; ++i) out[i] = static_cast<float>(index + i + 1);
  }
  std::string name(int64_t index) const override { return "image " + std::to_string(index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  RegionOfInterest region(int64_t index) const override {
    return index == part_ ? RegionOfInterest{1, 1, 3, 3} : RegionOfInterest();
  }
  std::string read(int64_t index, std::vector<uint8_t>&, SampleContent& content) const override {
    if (index == bad_) return "torn in two";
    const Bytes& bytes = contents_[static_cast<size_t>(index)];
    content.bytes = bytes.data();
    content.size = bytes.size();
    if (encoded_) return "";
    content.width = side_;
    content.height = index == low_ ? side_ / 2 : side_;
    content.channels = channels_;
    return "";
  }

  int64_t bad_ = -1, low_ = -1, part_ = -1;

 private:
  const int side_, channels_;
  const bool encoded_;
  std::vector<Bytes> contents_;
};

TransformPlan plan_of(int64_t side, int64_t channels) {
  TransformPlan plan;
  plan.training = true;
  plan.shape = square_shape(side, channels);
  plan.hflip = 0.5;
  plan.train_crop = config::TrainCrop::padded;
  plan.crop_padding = 4;
  plan.target_rule.flip_signs = {-1, 1, 1};
  return plan;
}

ResidentPixels::Settings load_settings() {
  ResidentPixels::Settings settings;
  settings.threads = 3;
  settings.budget_bytes = 1 << 20;
  return settings;
}

/// All batches of epochs 0 and 3, as one list of tensors. `stays`: pixels stay where the network is.
std::vector<torch::Tensor> batches_of(const std::shared_ptr<const Source>& source, const TransformPlan& plan,
                                      bool stays) {
  LoaderSettings settings;
  settings.batch_size = 8;
  settings.num_workers = 2;
  settings.shuffle = true;
  settings.seed = 9;
  FeedSettings feed_settings;
  feed_settings.mean.assign(static_cast<size_t>(plan.shape.channels), 0.4);
  feed_settings.std.assign(static_cast<size_t>(plan.shape.channels), 0.3);
  feed_settings.channels_last = plan.shape.channels == 3;
  if (stays) {
    const ResidentPixels::Loaded loaded = ResidentPixels::load(*source, plan, load_settings());
    EXPECT_EQ(loaded.obstacle, "");
    feed_settings.resident = loaded.pixels;
    settings.stored = loaded.pixels->layout();
  }
  DeviceFeed feed(std::make_shared<Loader>(source, plan, settings), feed_settings);
  std::vector<torch::Tensor> all;
  for (const int64_t epoch : {0, 3}) {
    feed.begin_epoch(epoch);
    Batch batch;
    while (feed.next(batch)) {
      for (const torch::Tensor& tensor : {batch.images, batch.labels, batch.targets}) all.push_back(tensor.clone());
      all.push_back(torch::tensor(batch.samples));
    }
  }
  return all;
}

void expect_same_batches(const std::shared_ptr<const Source>& source, const TransformPlan& plan) {
  const std::vector<torch::Tensor> stays = batches_of(source, plan, true), made = batches_of(source, plan, false);
  ASSERT_EQ(stays.size(), made.size());
  ASSERT_EQ(stays.size(), 2 * 5 * 4U);
  for (size_t i = 0; i < stays.size(); ++i) {
    EXPECT_TRUE(torch::equal(stays[i], made[i])) << i;
    EXPECT_EQ(stays[i].strides(), made[i].strides()) << i;
  }
}

TEST(ResidentPixelsTest, CropsAndMirrorsWithTheBitsOfTheLoader) {
  for (const bool encoded : {false, true}) {
    expect_same_batches(std::make_shared<EqualImages>(12, 3, encoded), plan_of(12, 3));
    expect_same_batches(std::make_shared<EqualImages>(12, 1, encoded), plan_of(12, 1));
  }
}

TEST(ResidentPixelsTest, GrayBecomesColourAndBack) {
  for (const bool encoded : {false, true}) {
    expect_same_batches(std::make_shared<EqualImages>(12, 1, encoded), plan_of(12, 3));
    expect_same_batches(std::make_shared<EqualImages>(12, 3, encoded), plan_of(12, 1));
  }
}

TEST(ResidentPixelsTest, WholeImagesAndCentresOfImages) {
  const auto source = std::make_shared<EqualImages>(12, 3, false);
  TransformPlan plan = plan_of(12, 3);
  plan.train_crop = config::TrainCrop::none;
  expect_same_batches(source, plan);
  plan.training = false;
  plan.target_rule = {};
  plan.crop_pct = 0.75;
  plan.shape = square_shape(9, 3);  // of 12, as 9 / 0.75 has it
  expect_same_batches(source, plan);
}

TEST(ResidentPixelsTest, SaysWhatIsInTheWay) {
  const auto obstacle = [](const std::function<void(EqualImages&, TransformPlan&, ResidentPixels::Settings&)>& change) {
    EqualImages source(12, 3, false);
    TransformPlan plan = plan_of(12, 3);
    ResidentPixels::Settings settings = load_settings();
    change(source, plan, settings);
    const ResidentPixels::Loaded loaded = ResidentPixels::load(source, plan, settings);
    EXPECT_EQ(loaded.pixels, nullptr);
    return loaded.obstacle;
  };
  EXPECT_EQ(obstacle([](auto& source, auto&, auto&) { source.bad_ = 20; }), "image 20: torn in two");
  EXPECT_EQ(obstacle([](auto& source, auto&, auto&) { source.bad_ = 0; }), "image 0: torn in two");
  EXPECT_EQ(obstacle([](auto& source, auto&, auto&) { source.low_ = 30; }),
            "image 30: is 6 x 12, but the first image is 12 x 12");
  EXPECT_EQ(obstacle([](auto& source, auto&, auto&) { source.part_ = 30; }), "image 30: only a part of it matters");
  EXPECT_EQ(obstacle([](auto&, auto& plan, auto&) { plan.shape = square_shape(16, 3); }),
            "images of 12 x 12 are resized to 16 x 16");
  EXPECT_EQ(obstacle([](auto&, auto& plan, auto&) { plan.train_crop = config::TrainCrop::random_resized; }),
            "train-crop random-resized resizes");
  EXPECT_EQ(obstacle([](auto&, auto& plan, auto&) { plan.augment.erasing = 0.5; }),
            "images are changed besides cropping and mirroring");
  EXPECT_NE(obstacle([](auto&, auto&, auto& settings) { settings.budget_bytes = 40'000; }).find("do not fit into"),
            std::string::npos);
}

}  // namespace
}  // namespace stoker::data
