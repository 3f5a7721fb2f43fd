// SPDX-License-Identifier: Apache-2.0
// What a loader is measured against: decoding the whole of the same files, one after another, on one thread,
// with libjpeg as it is.
#pragma once

#include <cstdint>
#include <vector>

#include "data/image/decode.h"
#include "data/source.h"

namespace stoker::data {

/// Encoded files in memory. One thread.
class DecodeReference {
 public:
  /// Reads evenly spaced samples: at most `max_images`, and no more than `max_bytes` of them. Samples that
  /// cannot be read or decoded are left out.
  DecodeReference(const Source& source, int channels, const DecodeLimits& limits, int64_t max_images = 1000,
                  int64_t max_bytes = int64_t{256} << 20);

  /// 0 where the source has no encoded files.
  int64_t images() const { return static_cast<int64_t>(files_.size()); }
  /// Encoded bytes and pixels of all images.
  int64_t bytes() const { return bytes_; }
  double megapixels() const { return megapixels_; }
  /// Decodes all images once. Returns wall seconds. Throws core::StopRequested.
  double decode_all();

 private:
  std::string decode(const std::vector<uint8_t>& file);

  const int channels_;
  const DecodeLimits limits_;
  std::vector<std::vector<uint8_t>> files_;
  int64_t bytes_ = 0;
  double megapixels_ = 0;
  ImageBuffer image_;
};

}  // namespace stoker::data
