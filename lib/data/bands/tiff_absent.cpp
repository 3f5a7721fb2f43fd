// SPDX-License-Identifier: Apache-2.0
// TIFF files of many bands in a build without libtiff: stands in for tiff_bands.cpp.
#include "core/error.h"
#include "core/format.h"
#include "data/bands/band_file.h"
#include "data/bands/tiff_bands.h"

namespace stoker::data {

void require_band_library(const std::string& path) {
  throw core::Error(core::ErrorKind::unavailable,
                    core::format("cannot read {}: this program was built without libtiff", core::printable(path)),
                    "install libtiff-dev and build again; cmake says whether it found TIFF");
}

// Never reached by a data set: it is refused before.
std::string read_tiff_bands(const uint8_t*, uint64_t, const TiffDirectory&, std::vector<uint8_t>&, uint8_t*) {
  return "this program was built without libtiff";
}

}  // namespace stoker::data
