// SPDX-License-Identifier: Apache-2.0
#include "engine/probe/memory_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <set>

namespace stoker::engine {
namespace {

constexpr int64_t kMega = 1'000'000, kBatch = 256;

/// A device on which images and gradients take memory at two moments, and a shape that is seen for the first time takes
/// more, as cuDNN's search does.
struct FakeDevice {
  int64_t image = 0, gradients = 0, weights = 0, search = 0, memory = int64_t{1} << 62;
  std::set<int64_t> seen;
  int64_t most_tried = 0;

  int64_t peak_without_search(int64_t images) const { return weights + std::max(gradients, images * image); }
  int64_t peak(int64_t images) {
    const int64_t bytes = peak_without_search(images) + (seen.insert(images).second ? search : 0);
    if (bytes > memory) throw std::bad_alloc();
    most_tried = std::max(most_tried, images);
    return bytes;
  }
  PeakLine line(int64_t first = 8, int64_t most = kBatch) {
    const auto is_too_much = [](const std::exception& error) {
      return dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    };
    return peak_line([this](int64_t images) { return peak(images); }, first, most, is_too_much);
  }
  void expect_right_at(int64_t images) {
    const PeakLine found = line();
    const auto truth = static_cast<double>(peak_without_search(images));
    EXPECT_NEAR(static_cast<double>(extrapolated_peak(found.small, found.large, images)) / truth, 1, 0.05);
    EXPECT_TRUE(found.settled);
  }
};

TEST(DevicePeaksTest, TheSearchForAlgorithmsIsNoPartOfThePlan) {
  FakeDevice device;
  device.image = 80 * kMega;
  device.search = 500 * kMega;
  device.expect_right_at(kBatch);
  device.seen.clear();
  device.expect_right_at(/*images=*/32);
  EXPECT_LE(device.most_tried, 32) << "a few images are enough";
}

TEST(DevicePeaksTest, ThePeakOfFewImagesMayBeThatOfTheGradients) {
  FakeDevice device;  // a vision transformer
  device.image = 100 * kMega;
  device.gradients = 1500 * kMega;
  device.weights = 350 * kMega;
  device.expect_right_at(kBatch);
}

TEST(DevicePeaksTest, AFlatPeakIsNoLine) {
  FakeDevice device;
  device.image = 10 * kMega;
  device.gradients = 500 * kMega;
  device.search = 100 * kMega;
  device.expect_right_at(4 * kBatch);
}

TEST(DevicePeaksTest, WhereMemoryRunsOutTheLastTwoNumbersThatFitDecide) {
  FakeDevice device;
  device.image = 80 * kMega;
  device.memory = 2000 * kMega;  // 25 images
  const PeakLine found = device.line();
  EXPECT_EQ(found.large.images, 16);
  EXPECT_EQ(extrapolated_peak(found.small, found.large, kBatch), 80 * kMega * kBatch);
  device.memory = 1000 * kMega;  // 12
  EXPECT_EQ(device.line().small.images, 4);
  device.memory = 100 * kMega;
  EXPECT_THROW(device.line(), std::bad_alloc);
}

TEST(DevicePeaksTest, NoMoreImagesAreTriedThanTheBatchHas) {
  for (const int64_t batch : {1, 3, 8}) {
    FakeDevice device;
    device.image = 80 * kMega;
    device.memory = batch * device.image;
    const PeakLine found = device.line(/*first=*/batch, /*most=*/batch);
    EXPECT_EQ(device.most_tried, batch);
    EXPECT_EQ(extrapolated_peak(found.small, found.large, batch), batch * device.image);
  }
}

}  // namespace
}  // namespace stoker::engine
