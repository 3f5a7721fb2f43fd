// SPDX-License-Identifier: Apache-2.0
// TIFF files of any number of bands, written by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "made_data.h"

namespace stoker::data {

struct TiffRecipe {
  int width = 5, height = 4, bands = 6;
  int bits = 8;
  bool planar = false, deflated = false, big_endian = false;
  int rows_per_strip = 3;
  int tile = 0;         ///< side of tiles, a multiple of 16; 0: strips
  int colour_kind = 1;  ///< 1 gray, 2 RGB
  int extra = 0;        ///< the value of ExtraSamples; -1: it is not there
};

/// Number `band` of the pixel at (x, y): differs from place to place and needs 16 bits where the file has them.
uint16_t band_value(const TiffRecipe& recipe, int x, int y, int band, int salt = 0);
/// A file of these numbers.
Bytes band_tiff(const TiffRecipe& recipe, int salt = 0);

}  // namespace stoker::data
