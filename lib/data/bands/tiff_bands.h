// SPDX-License-Identifier: Apache-2.0
// The numbers of a TIFF file of any number of channels, through libtiff. Only called with a directory that was checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/storage/tiff_directory.h"

namespace stoker::data {

/// Writes [height, width, samples] numbers of 8 or 16 bits, in this machine's order of bytes, to `out`; `piece` is
/// scratch for a strip or a tile. Returns "" or why they are not all there. Kept as they are, packed by LZW, deflate,
/// PackBits or Zstandard; other ways of packing are not read.
std::string read_tiff_bands(const uint8_t* bytes, uint64_t size, const TiffDirectory& directory,
                            std::vector<uint8_t>& piece, uint8_t* out);

}  // namespace stoker::data
