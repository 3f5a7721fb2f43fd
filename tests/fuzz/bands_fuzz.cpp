// SPDX-License-Identifier: Apache-2.0
// Bytes as a TIFF file of many bands: our checks of its directory, and our use of the values from libtiff, which is not
// instrumented.
#include <vector>

#include "data/bands/band_source.h"
#include "fuzz_target.h"

using namespace stoker::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static BandScratch scratch;
  SampleShape shape;
  std::string problem;
  if (!read_band_header(bytes, size, shape, problem)) {
    SampleShape any = square_shape(4, 6);
    std::vector<uint8_t> out(static_cast<size_t>(any.bytes()));
    FUZZ_CHECK(!decode_bands(bytes, size, any, scratch, out.data()).empty());
    return 0;
  }
  FUZZ_CHECK(problem.empty() && shape.is_possible() && shape.channels <= 1024);
  FUZZ_CHECK(shape.bytes() <= int64_t{2} << 30);
  if (shape.bytes() > 1 << 20) return 0;  // slow, and no other code
  // One byte more, that must stay.
  std::vector<uint8_t> out(static_cast<size_t>(shape.bytes()) + 1, 0xA5);
  const std::string reason = decode_bands(bytes, size, shape, scratch, out.data());
  FUZZ_CHECK(out.back() == 0xA5);
  if (!reason.empty()) return 0;
  std::vector<uint8_t> again(out.size(), 0x5A);
  again.back() = 0xA5;
  FUZZ_CHECK(decode_bands(bytes, size, shape, scratch, again.data()).empty());
  FUZZ_CHECK(again == out);  // every number is written
  return 0;
}
