// SPDX-License-Identifier: Apache-2.0
// A source of files of many bands in front of the list of these files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/source.h"

namespace stoker::data {

/// `files` as samples of a fixed size where most of those that are TIFF files are such of many bands: their number of
/// channels, size and kind of number are those of most of some files that are looked at here; any other file is then a
/// bad sample. Else `files` itself. Throws core::Error{data} where files of bands are not read.
std::shared_ptr<const Source> as_bands(std::shared_ptr<const Source> files);

// Files of one sample with more channels than a picture has: multi-band TIFF files.

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
