// SPDX-License-Identifier: Apache-2.0
// What the first directory of a TIFF file says, read without a library.
#pragma once

#include <cstdint>
#include <string>

#include "data/storage/byte_view.h"

namespace stoker::data {

/// Values as they stand in the file; those of TIFF's specification where a tag is missing.
struct TiffDirectory {
  uint64_t width = 0, height = 0;  ///< pixels
  uint64_t bits = 1;               ///< of the first sample of a pixel
  bool has_equal_samples = true;   ///< all samples have as many bits and the same format
  uint64_t samples = 1;            ///< of a pixel
  uint64_t colour_kind = 1;        ///< 0 and 1 gray, 2 RGB, 3 palette
  uint64_t compression = 1;
  uint64_t planes = 1;  ///< 1 interleaved, 2 one plane per sample
  uint64_t format = 1;  ///< 1 whole numbers without sign, 2 with, 3 floats
  int64_t extra = -1;   ///< the first of the samples beyond the colours: 0 unspecified, 1 and 2 alpha; -1: not said
  uint64_t orientation = 1;
  uint64_t tile_width = 0, tile_height = 0;  ///< 0: strips
};

/// Whether these are the first bytes of a TIFF file (not of a BigTIFF).
bool is_tiff(const ByteView& file);
/// Returns "" or why there is no directory.
std::string read_tiff_directory(const ByteView& tiff, TiffDirectory& directory);

}  // namespace stoker::data
