// SPDX-License-Identifier: Apache-2.0
// Files of one sample with more channels than a picture has: TIFF files of many bands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/sample_shape.h"

namespace stoker::data {

/// Scratch of one thread.
struct BandScratch {
  std::vector<uint8_t> stored, piece;
};

/// Whether the file is a TIFF of bands: of more than 4 samples per pixel, or of 2 or 4 that are neither colours with
/// alpha nor declared as colours. Its shape is then in `shape`; bands of 16 bits become float32.
/// Returns false and "" in `problem` for all others, false and the reason for a TIFF of bands that is not read.
bool read_band_header(const uint8_t* bytes, uint64_t size, SampleShape& shape, std::string& problem);

/// Writes the numbers of a file of this shape, [height, width, channels], to `out`. Returns "" or why it is bad:
/// another shape, a part that is missing. Takes no more memory than the sample and one strip or tile.
std::string decode_bands(const uint8_t* bytes, uint64_t size, const SampleShape& shape, BandScratch& scratch,
                         uint8_t* out);

/// "64 x 64 x 13 of float32"
std::string band_shape_text(const SampleShape& shape);

}  // namespace stoker::data
