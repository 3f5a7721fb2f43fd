// SPDX-License-Identifier: Apache-2.0
#include "data/image/webp_frame.h"

#include <string_view>

#include "data/storage/byte_view.h"

namespace stoker::data {
namespace {

void append_text(std::vector<uint8_t>& bytes, std::string_view text) {
  for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
}

void append_little(std::vector<uint8_t>& bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

}  // namespace

// WebP container specification, "Extended File Format": flags at byte 20 of the file, animation is bit 1.
bool is_animated_webp(const uint8_t* bytes, uint64_t size) {
  const ByteView file(bytes, size);
  return file.matches(12, "VP8X") && (file.u8(20) & 0x02) != 0;
}

std::string first_webp_frame(const uint8_t* bytes, uint64_t size, WebpFrame& frame, std::vector<uint8_t>& still) {
  constexpr uint64_t kFirstChunk = 30, kFrameHeader = 16;
  const ByteView file(bytes, size);
  const int canvas_width = static_cast<int>(file.little24(24)) + 1,
            canvas_height = static_cast<int>(file.little24(27)) + 1;
  for (uint64_t at = kFirstChunk; file.has(at, 8);) {
    const uint64_t length = file.little32(at + 4);
    if (!file.matches(at, "ANMF")) {
      at += 8 + length + (length & 1);
      continue;
    }
    if (length < kFrameHeader || !file.has(at + 8, length)) return "WebP cut short inside its first frame";
    frame.left = 2 * static_cast<int>(file.little24(at + 8));
    frame.top = 2 * static_cast<int>(file.little24(at + 11));
    frame.width = static_cast<int>(file.little24(at + 14)) + 1;
    frame.height = static_cast<int>(file.little24(at + 17)) + 1;
    if (frame.left + frame.width > canvas_width || frame.top + frame.height > canvas_height) {
      return "WebP frame that lies outside the canvas";
    }
    const ByteView content = file.part(at + 8 + kFrameHeader, length - kFrameHeader);
    const bool separate_alpha = content.matches(0, "ALPH");
    still.clear();
    append_text(still, "RIFF");
    append_little(still, 4 + (separate_alpha ? 18 : 0) + content.size(), 4);
    append_text(still, "WEBP");
    if (separate_alpha) {  // only the extended format has the chunk
      append_text(still, "VP8X");
      append_little(still, 10, 4);
      append_little(still, 0x10, 4);
      append_little(still, static_cast<uint64_t>(frame.width - 1), 3);
      append_little(still, static_cast<uint64_t>(frame.height - 1), 3);
    }
    still.insert(still.end(), content.data(), content.data() + content.size());
    return "";
  }
  return "WebP animation without frames";
}

}  // namespace stoker::data
