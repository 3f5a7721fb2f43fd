// SPDX-License-Identifier: Apache-2.0
#include "data/image/png_chunks.h"

#include <zlib.h>

#include "core/format.h"
#include "data/storage/byte_view.h"

namespace stoker::data {

std::string keep_pixel_chunks(const uint8_t* bytes, uint64_t size, std::vector<uint8_t>& kept) {
  constexpr uint64_t kSignature = 8, kFrame = 12;  // a chunk's length, name and checksum
  const ByteView file(bytes, size);
  kept.assign(bytes, bytes + kSignature);
  bool has_pixels = false;
  for (uint64_t at = kSignature;;) {
    const uint64_t length = file.big32(at);
    if (!file.has(at, kFrame) || !file.has(at, kFrame + length)) return core::format("PNG cut short at byte {}", size);
    const auto is = [&](const char* name) { return file.matches(at + 4, name); };
    if (is("IHDR") || is("PLTE") || is("tRNS") || is("IDAT") || is("IEND")) {
      const auto checksum = ::crc32(0, bytes + at + 4, static_cast<uInt>(length + 4));
      if (checksum != file.big32(at + 8 + length)) {
        return core::format("PNG chunk {} at byte {} is damaged: its checksum does not match",
                            std::string(bytes + at + 4, bytes + at + 8), at);
      }
      kept.insert(kept.end(), bytes + at, bytes + at + kFrame + length);
      has_pixels = has_pixels || is("IDAT");
      if (is("IEND")) return has_pixels ? "" : "PNG without pixels";
    }
    at += kFrame + length;
  }
}

}  // namespace stoker::data
