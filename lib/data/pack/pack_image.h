// SPDX-License-Identifier: Apache-2.0
// Packing of one image: no change, a smaller or re-encoded image, or a lossless change of coding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/image/decode.h"
#include "data/resample/resample.h"
#include "data/source.h"

namespace stoker::data {

struct PackRecipe {
  int64_t max_side = 0;  ///< pixels: larger images are resized so that their longer side is this; 0: none
  int64_t quality = 0;   ///< 1 to 100: every image becomes a JPEG of this quality; 0: only what must be written anew
  bool progressive_to_baseline = false;  ///< JPEGs: lossless
  DecodeLimits limits;
};

/// Turns the content of a sample into the file that is packed. One per thread.
class ImagePacker {
 public:
  explicit ImagePacker(const PackRecipe& recipe) : recipe_(recipe) {}

  /// On success returns "" and sets `file` and its `format`; else returns why the image is bad. Images that
  /// the recipe leaves alone keep their bytes; their header is looked at, their pixels are not. Resized
  /// images are JPEGs of quality 90 where they were JPEGs, else PNGs; pixels without a file become a PNG.
  /// Decoded pixels are those of decode_image(): upright, 8 bits, gray or RGB.
  std::string pack(const SampleContent& content, std::vector<uint8_t>& file, ImageFormat& format);

 private:
  std::string decode(const SampleContent& content, ImageHeader& header);
  void shrink();
  void encode(ImageFormat wanted, std::vector<uint8_t>& file, ImageFormat& format);

  const PackRecipe recipe_;
  ImageBuffer image_, shrunk_;
  ResampleScratch scratch_;
};

}  // namespace stoker::data
