// SPDX-License-Identifier: Apache-2.0
// What one worker does with one sample: read, look at the header, draw the geometry, decode, write the row.
// Knows nothing of tickets, slabs or threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/decode.h"
#include "data/source.h"
#include "data/stage_times.h"
#include "data/transform.h"

namespace stoker::data {

/// One per worker; holds the worker's buffers. The result is a pure function of (seed, epoch, sample).
class SampleReader {
 public:
  SampleReader(const Source& source, const TransformPlan& plan, const DecodeLimits& limits, uint64_t seed)
      : source_(source), plan_(plan), limits_(limits), seed_(seed) {}

  /// Writes img_size x img_size x channels bytes to `row`. Returns "" or why the image is bad; `row` is then
  /// undefined. Throws what Source::read throws. Adds to `times`.
  std::string read_into(int64_t sample, int64_t epoch, uint8_t* row, StageTimes& times);

 private:
  std::string write_encoded(const SampleContent& content, core::Rng& rng, uint8_t* row, StageTimes& times);
  void forget_large_images(uint64_t encoded_bytes);
  void transform_image(const uint8_t* pixels, int height, int width, const SampleGeometry& geometry,
                       uint8_t* row, StageTimes& times);
  void write_pixels(const SampleContent& content, core::Rng& rng, uint8_t* row, StageTimes& times);

  const Source& source_;
  const TransformPlan& plan_;
  const DecodeLimits& limits_;
  const uint64_t seed_;
  std::vector<uint8_t> encoded_;
  ImageBuffer image_;
  std::vector<uint8_t> converted_;  ///< pixels of a source with other channels
  TransformScratch scratch_;
  AugmentScratch augment_scratch_;
};

}  // namespace stoker::data
