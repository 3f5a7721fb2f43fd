// SPDX-License-Identifier: Apache-2.0
#include "data/image/orientation.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace stoker::data {

int exif_orientation(const ByteView& exif) {
  const bool little = exif.matches(0, "II");
  if (!little && !exif.matches(0, "MM")) return 0;
  const auto u16 = [&](uint64_t at) { return little ? exif.little16(at) : exif.big16(at); };
  const auto u32 = [&](uint64_t at) { return little ? exif.little32(at) : exif.big32(at); };
  constexpr uint32_t kOrientationTag = 0x0112, kByte = 1, kText = 2, kLong = 4;
  const uint64_t directory = u32(4);
  const uint32_t entries = u16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * uint64_t{i};
    if (!exif.has(entry, 12)) return 0;
    if (u16(entry) != kOrientationTag) continue;
    const uint32_t type = u16(entry + 2);
    const uint32_t value = type == kByte ? exif.u8(entry + 8) : type == kLong ? u32(entry + 8) : u16(entry + 8);
    return type >= kByte && type <= kLong && type != kText && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 0;
}

int xmp_orientation(const ByteView& xmp) {
  const std::string_view text(reinterpret_cast<const char*>(xmp.data()), xmp.size());
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at)) {
    at += kName.size();
    const size_t skip = text.substr(at, 1) == ">" ? 1 : text.substr(at, 2) == "=\"" ? 2 : 0;
    if (skip == 0 || at + skip >= text.size()) continue;
    const char digit = text[at + skip];
    if (digit >= '0' && digit <= '9') return digit >= '1' && digit <= '8' ? digit - '0' : 1;
  }
  return 0;
}

void apply_orientation(int orientation, ImageBuffer& image) {
  if (orientation <= 1 || orientation > 8) return;
  const int width = image.width, height = image.height, channels = image.channels;
  const bool swaps_axes = orientation >= 5;
  const int out_width = swaps_axes ? height : width, out_height = swaps_axes ? width : height;
  // EXIF 2.3, tag 0x0112: which side of the scene the stored row 0 and column 0 show.
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  ScratchBytes turned(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels));
  uint8_t* out = turned.data();
  for (int y = 0; y < out_height; ++y) {
    for (int x = 0; x < out_width; ++x, out += channels) {
      const int along_row = swaps_axes ? y : x, along_column = swaps_axes ? x : y;
      const int64_t row = from_bottom ? height - 1 - along_column : along_column;
      const int64_t column = from_right ? width - 1 - along_row : along_row;
      std::copy_n(image.pixels.data() + (row * width + column) * channels, channels, out);
    }
  }
  image.pixels = std::move(turned);
  image.width = out_width;
  image.height = out_height;
}

}  // namespace stoker::data
