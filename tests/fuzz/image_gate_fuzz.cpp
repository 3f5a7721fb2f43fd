// SPDX-License-Identifier: Apache-2.0
// All formats but JPEG through our own checks and then the decoder. Those of libraries are not instrumented: what they
// are given and what we make of their pixels is under test, not their inside.
#include <zlib.h>

#include <algorithm>

#include "data/image/decode.h"
#include "data/image/decoders.h"
#include "fuzz_target.h"

namespace {

using namespace stoker::data;
using stoker::fuzz::Choices;

constexpr DecodeLimits kLimits{/*max_megapixels=*/0.004,
                               /*max_side=*/200,
                               /*max_jpeg_scans=*/1,
                               /*max_seconds=*/30,       false, {}, nullptr};

void check_png(const uint8_t* bytes, size_t size) {
  std::vector<uint8_t> kept;
  if (!keep_pixel_chunks(bytes, size, kept).empty()) return;
  FUZZ_CHECK(kept.size() <= size);
  std::vector<uint8_t> again;
  FUZZ_CHECK(keep_pixel_chunks(kept.data(), kept.size(), again).empty() && again == kept);
}

void check_webp(const uint8_t* bytes, size_t size, const ImageHeader& header) {
  if (!is_animated_webp(bytes, size)) return;
  WebpFrame frame;
  std::vector<uint8_t> still;
  if (!first_webp_frame(bytes, size, frame, still).empty()) return;
  const bool turned = header.orientation >= 5;
  FUZZ_CHECK(frame.left >= 0 && frame.top >= 0 && frame.width >= 1 && frame.height >= 1);
  FUZZ_CHECK(frame.left + frame.width <= (turned ? header.height : header.width));
  FUZZ_CHECK(frame.top + frame.height <= (turned ? header.width : header.height));
  FUZZ_CHECK(still.size() <= size + 18 + 12);
}

/// Chunk checksums made right again, so that changes get past them.
void repair_png(uint8_t* bytes, size_t size) {
  for (size_t at = 8; at + 12 <= size;) {
    const size_t length = static_cast<size_t>(bytes[at]) << 24 | static_cast<size_t>(bytes[at + 1]) << 16 |
                          static_cast<size_t>(bytes[at + 2]) << 8 | bytes[at + 3];
    if (length > size - at - 12) return;
    const uint64_t checksum = ::crc32(0, bytes + at + 4, static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i) bytes[at + 8 + length + i] = static_cast<uint8_t>(checksum >> (24 - 8 * i));
    at += 12 + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static ImageBuffer image;
  Choices choices(bytes, size);
  const int channels = choices.one_in(2) ? 3 : 1;
  ImageHeader header;
  const std::string refusal = read_header(bytes, size, kLimits, header);
  if (header.format == ImageFormat::jpeg) return 0;  // has a target of its own
  if (!refusal.empty()) {
    FUZZ_CHECK(decode_image(bytes, size, channels, kLimits, image) == refusal);
    return 0;
  }
  FUZZ_CHECK(header.width >= 1 && header.height >= 1);
  FUZZ_CHECK(1e-6 * header.width * header.height <= kLimits.max_megapixels);
  if (header.format == ImageFormat::png) check_png(bytes, size);
  if (header.format == ImageFormat::webp) check_webp(bytes, size, header);
  if (!decode_image(bytes, size, channels, kLimits, image).empty()) return 0;
  FUZZ_CHECK(image.width == header.width && image.height == header.height && image.channels == channels);
  FUZZ_CHECK(image.pixels.size() >=
             static_cast<size_t>(header.width) * static_cast<size_t>(header.height) * static_cast<size_t>(channels));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned int seed) {
  size = LLVMFuzzerMutate(bytes, size, max_size);
  if (!Choices(seed).one_in(8) && size > 8 && bytes[1] == 'P') repair_png(bytes, size);
  return size;
}
