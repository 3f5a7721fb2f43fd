// SPDX-License-Identifier: Apache-2.0
// What an audit looks at in one sample: its pixels as a digest, its size and kind, whether it can be read at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image/decode.h"
#include "data/sample_shape.h"
#include "data/source.h"

namespace stoker::data {

/// What a sample is made of, as it is stored.
enum class SampleKind : uint8_t { gray, rgb, rgba, float16, float32 };

struct SampleFacts {
  uint64_t digest = 0;  ///< of pixels and size; equal for equal pictures, however they are stored
  int32_t width = 0, height = 0;
  SampleKind kind = SampleKind::rgb;
  uint8_t bits = 8;  ///< of a sample of a picture, as stored
  bool readable = false;
  bool one_value = false;    ///< every pixel has the same colour, or every number the same value
  bool not_finite = false;   ///< of floats: some are no numbers
  bool gray_as_rgb = false;  ///< three channels that are the same everywhere
};

std::string kind_name(const SampleFacts& facts);  ///< "gray, 8 bits", "float32"

/// Reads samples of one source, on one thread.
class SampleExaminer {
 public:
  SampleExaminer(const Source& source, const DecodeLimits& limits) : source_(source), limits_(limits) {}

  /// Returns "" or why the sample is bad. Of a video every frame counts to the digest, and the one in the middle is
  /// what the rest is about. Throws as Source::read().
  std::string examine(int64_t index, SampleFacts& facts);
  /// Gray pixels of the sample that was examined last, packed; empty where it holds numbers that are no bytes.
  const uint8_t* gray() const { return gray_.empty() ? nullptr : gray_.data(); }

 private:
  std::string examine_image(const SampleContent& content, SampleFacts& facts);
  void examine_pixels(const uint8_t* pixels, int width, int height, int channels, SampleFacts& facts);

  const Source& source_;
  const DecodeLimits limits_;
  std::vector<uint8_t> encoded_, gray_;
  ImageBuffer image_;
};

}  // namespace stoker::data
