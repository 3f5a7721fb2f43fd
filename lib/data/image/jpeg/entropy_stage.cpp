// SPDX-License-Identifier: Apache-2.0
#include "data/image/jpeg/entropy_stage.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "data/image/jpeg/jpeg_encode.h"

namespace stoker::data {
namespace {

constexpr int kWidth = 48, kHeight = 16, kChannels = 3, kQuality = 90;

/// Pixels of which no two blocks are alike: a coefficient that is missing or misplaced shows.
std::vector<uint8_t> test_pixels() {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      for (int c = 0; c < kChannels; ++c) pixels.push_back(static_cast<uint8_t>(x * x / (3 + c) + 13 * y + 60 * c));
    }
  }
  return pixels;
}

struct Decoded {
  std::string reason;
  Region held;
  std::vector<uint8_t> pixels;
  bool operator==(const Decoded& other) const {
    return reason == other.reason && held.left == other.held.left && held.width == other.held.width &&
           held.top == other.held.top && held.height == other.held.height && pixels == other.pixels;
  }
};

Decoded decoded_with(const StageDecoder& decode, const std::vector<uint8_t>& jpeg, const Region& wanted,
                     EntropyStage stage) {
  Decoded decoded;
  decoded.held = wanted;
  ImageBuffer image;
  decoded.reason = decode(jpeg, decoded.held, image, stage);
  const int64_t bytes = int64_t{image.width} * image.height * image.channels;
  if (decoded.reason.empty()) decoded.pixels.assign(image.pixels.begin(), image.pixels.begin() + bytes);
  return decoded;
}

}  // namespace

std::string difference_of_stages(const StageDecoder& decode) {
  const std::pair<ColourSampling, const char*> kSamplings[] = {{ColourSampling::half, "4:2:0"},
                                                               {ColourSampling::full, "4:4:4"}};
  // Blocks are left out on the left of the second region, and on both sides of the third at 4:4:4.
  const std::pair<Region, const char*> kRegions[] = {
      {{0, 0, kWidth, kHeight}, "whole"}, {{36, 0, 12, kHeight}, "right"}, {{24, 4, 8, 8}, "middle"}};
  const std::vector<uint8_t> pixels = test_pixels();
  for (const auto& [sampling, sampling_name] : kSamplings) {
    std::vector<uint8_t> jpeg;
    encode_jpeg(pixels.data(), kWidth, kHeight, kChannels, kQuality, jpeg, sampling);
    for (const auto& [region, region_name] : kRegions) {
      const Decoded expected = decoded_with(decode, jpeg, region, EntropyStage::libjpeg);
      if (expected.reason.empty() && decoded_with(decode, jpeg, region, EntropyStage::own) == expected) continue;
      return core::format("{}x{}, {}, {}", kWidth, kHeight, sampling_name, region_name);
    }
  }
  return "";
}

EntropyStage EntropyStageChoice::get() {
  std::call_once(once_, [this] {
    std::string difference;
    try {
      difference = difference_of_stages(decode_);
    } catch (const core::Error& error) {
      difference = error.what();
    }
    if (difference.empty()) {
      stage_ = EntropyStage::own;
      return;
    }
    core::log_warning(
        "JPEG: our Huffman stage gives other pixels than libjpeg's in a self-test ({}): this process decodes with "
        "libjpeg's, which takes up to a fifth longer; the program was probably built with another libjpeg-turbo than "
        "the "
        "one that is installed",
        difference);
  });
  return stage_;
}

}  // namespace stoker::data
