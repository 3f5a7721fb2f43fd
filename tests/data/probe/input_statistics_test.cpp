// SPDX-License-Identifier: Apache-2.0
#include "data/probe/probe_sizes.h"

#include <c10/util/Half.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "data/source.h"
#include "made_data.h"

namespace stoker::data {
namespace {

/// Samples of 2 x 3 x channels floats, made on the spot.
class MadeFloats : public LeafSource {
 public:
  using Value = std::function<double(int64_t sample, int64_t channel, int64_t place)>;
  MadeFloats(int64_t size, int64_t channels, Element element, Value value)
      : size_(size), shape_{0, 2, 3, channels, element}, value_(std::move(value)) {}

  int64_t size() const override { return size_; }
  int64_t label(int64_t) const override { return 0; }
  std::string name(int64_t index) const override { return "made#" + std::to_string(index); }
  std::string relative_name(int64_t index) const override { return name(index); }
  SampleShape fixed_shape() const override { return shape_; }
  std::string read(int64_t index, std::vector<uint8_t>& buffer, SampleContent& content) const override {
    seen_.push_back(index);
    buffer.clear();
    for (int64_t place = 0; place < 6; ++place) {
      for (int64_t c = 0; c < shape_.channels; ++c) append(value_(index, c, place), buffer);
    }
    content.bytes = buffer.data();
    content.height = 2;
    content.width = 3;
    content.channels = static_cast<int>(shape_.channels);
    content.element = shape_.element;
    return "";
  }
  const std::vector<int64_t>& seen() const { return seen_; }

 private:
  void append(double value, std::vector<uint8_t>& out) const {
    const c10::Half half(static_cast<float>(value));
    const auto single = static_cast<float>(value);
    const bool is_half = shape_.element == Element::float16;
    const void* const bytes = is_half ? static_cast<const void*>(&half) : &single;
    const auto* const begin = static_cast<const uint8_t*>(bytes);
    out.insert(out.end(), begin, begin + bytes_of(shape_.element));
  }

  const int64_t size_;
  const SampleShape shape_;
  const Value value_;
  mutable std::vector<int64_t> seen_;
};

TEST(InputStatisticsTest, MeanAndDeviationAreThoseOfEachChannel) {
  for (const Element element : {Element::float16, Element::float32}) {
    // Channel 0: 1000 + {-1, 1}; channel 1: -2 everywhere; channel 2: 0, 1, 2, 3, 4, 5.
    const MadeFloats source(40, 3, element, [](int64_t sample, int64_t channel, int64_t place) {
      return channel == 0 ? 1000 + (sample % 2 == 0 ? -1.0 : 1.0) : channel == 1 ? -2.0 : static_cast<double>(place);
    });
    const InputStatistics statistics = measure_inputs(source);
    EXPECT_EQ(statistics.samples, 40);
    ASSERT_EQ(statistics.mean.size(), 3u);
    EXPECT_NEAR(statistics.mean[0], 1000, 1e-9);
    EXPECT_NEAR(statistics.deviation[0], 1, 1e-9);
    EXPECT_EQ(statistics.mean[1], -2);
    EXPECT_EQ(statistics.deviation[1], 0);
    EXPECT_NEAR(statistics.mean[2], 2.5, 1e-12);
    EXPECT_NEAR(statistics.deviation[2], std::sqrt(35.0 / 12), 1e-12);
  }
}

TEST(InputStatisticsTest, OfManySamplesTwoThousandAreLookedAtFromAllOver) {
  const MadeFloats source(100'000, 1, Element::float32,
                          [](int64_t sample, int64_t, int64_t) { return double(sample); });
  const InputStatistics statistics = measure_inputs(source);
  EXPECT_EQ(statistics.samples, 2000);
  EXPECT_EQ(source.seen().size(), 2000u);
  EXPECT_EQ(source.seen()[19], 19);
  EXPECT_EQ(source.seen()[20], 1000);
  EXPECT_NEAR(statistics.mean[0], 49'509.5, 0.01);
}

TEST(InputStatisticsTest, BytesAreNotMeasured) {
  const MadeFloats source(10, 1, Element::uint8, [](int64_t, int64_t, int64_t) { return 1.0; });
  EXPECT_TRUE(measure_inputs(source).mean.empty());
}

TEST(InputStatisticsTest, ANumberThatIsNotFiniteIsNamed) {
  const MadeFloats source(10, 1, Element::float32, [](int64_t sample, int64_t, int64_t place) {
    return sample == 7 && place == 3 ? std::nan("") : 1.0;
  });
  const core::Error error = error_of([&] { measure_inputs(source); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_STREQ(error.what(), "made#7 holds nan");
}

TEST(PictureOfTest, NumbersAreStretchedAndPicturesStay) {
  const std::vector<float> numbers = {-3, 1, NAN, 5};
  const auto* const row = reinterpret_cast<const uint8_t*>(numbers.data());
  const Picture gray = picture_of(row, {0, 2, 2, 1, Element::float32, 1});
  EXPECT_EQ(gray.channels, 1);
  EXPECT_EQ(gray.pixels, (std::vector<uint8_t>{0, 128, 0, 255}));
  EXPECT_EQ(picture_of(row, {0, 1, 1, 4, Element::float32, 1}).pixels, (std::vector<uint8_t>{0, 255, 0}))
      << "the first three of more channels are colours";
  EXPECT_EQ(picture_of(row, {0, 2, 1, 2, Element::float32, 1}).pixels, (std::vector<uint8_t>{0, 0})) << "one of two";
  const Picture small = picture_of(row, {0, 1, 4, 1, Element::float32, 1}, 2);
  EXPECT_EQ(small.width, 2);
  EXPECT_EQ(small.pixels, (std::vector<uint8_t>{64, 128}));
  const std::vector<uint8_t> bytes = {10, 20, 30, 40, 50, 60};
  EXPECT_EQ(picture_of(bytes.data(), {0, 1, 2, 3, Element::uint8, 1}).pixels, bytes);
  const std::vector<float> equal(4, 7.0f);
  EXPECT_EQ(picture_of(reinterpret_cast<const uint8_t*>(equal.data()), {0, 2, 2, 1, Element::float32, 1}).pixels,
            std::vector<uint8_t>(4, 0));
}

}  // namespace
}  // namespace stoker::data
