// SPDX-License-Identifier: Apache-2.0
// Formats by their first bytes, sizes from their headers, orientation from EXIF: no pixel is touched here.
#include <algorithm>

#include "core/format.h"
#include "data/image/decode.h"
#include "data/storage/byte_view.h"
#include "data/storage/tiff_directory.h"

namespace stoker::data {
namespace {

ImageFormat sniffed_format(const ByteView& file) {
  if (file.matches(0, "\xFF\xD8\xFF")) return ImageFormat::jpeg;
  if (file.matches(0, "\x89PNG\r\n\x1A\n")) return ImageFormat::png;
  if (file.matches(0, "RIFF") && file.matches(8, "WEBP")) return ImageFormat::webp;
  // "BM" alone is too little to go by: the reserved words are 0 and the DIB header's size is a known one.
  if (file.matches(0, "BM") && file.little32(6) == 0 && file.little32(14) >= 12 && file.little32(14) <= 124) {
    return ImageFormat::bmp;
  }
  if (is_tiff(file)) return ImageFormat::tiff;
  return ImageFormat::unknown;
}

/// What a file that we do not read seems to be.
std::string unsupported_reason(const ByteView& file) {
  struct Known {
    uint64_t at;
    std::string_view magic;
    const char* name;
  };
  static constexpr Known kKnown[] = {{0, "GIF8", "GIF"},      {4, "ftypavif", "AVIF"},  {4, "ftyphei", "HEIC"},
                                     {4, "ftypmif1", "HEIF"}, {4, "jP  ", "JPEG 2000"}, {0, "\xFF\x0A", "JPEG XL"},
                                     {4, "JXL ", "JPEG XL"},  {0, "%PDF", "PDF"},       {0, "8BPS", "Photoshop"},
                                     {0, "<svg", "SVG"},      {0, "<?xml", "XML"},      {0, "<!DOCTYPE", "HTML"},
                                     {0, "<html", "HTML"},    {0, "PK\x03\x04", "zip"}, {0, "\x1F\x8B", "gzip"},
                                     {0, "P6", "PPM"},        {0, "P5", "PGM"},         {0, "\x76\x2F\x31\x01", "EXR"}};
  for (const Known& known : kKnown) {
    if (file.matches(known.at, known.magic)) {
      return core::format("{} is not read; convert it to JPEG, PNG, BMP, WebP or TIFF", known.name);
    }
  }
  return "not an image: the first bytes are those of no format that is read (JPEG, PNG, BMP, WebP, TIFF)";
}

/// The orientation tag of a TIFF structure as EXIF holds it; 1 when there is none or it is damaged.
int exif_orientation(const ByteView& tiff) {
  const bool little = tiff.matches(0, "II*");
  if (!little && !tiff.matches(0, "MM")) return 1;
  const auto u16 = [&](uint64_t at) { return little ? tiff.little16(at) : tiff.big16(at); };
  const auto u32 = [&](uint64_t at) { return little ? tiff.little32(at) : tiff.big32(at); };
  constexpr uint32_t kOrientationTag = 0x0112, kShort = 3;
  const uint64_t directory = u32(4);
  const uint32_t entries = u16(directory);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * uint64_t{i};
    if (!tiff.has(entry, 12)) return 1;
    if (u16(entry) != kOrientationTag) continue;
    const uint32_t value = u16(entry + 8);
    return u16(entry + 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

std::string read_jpeg_header(const ByteView& file, ImageHeader& header) {
  for (uint64_t at = 2; file.has(at, 4);) {
    if (file.u8(at) != 0xFF) return core::format("JPEG marker expected at byte {}", at);
    const uint32_t marker = file.u8(at + 1);
    if (marker == 0xFF) {  // fill byte
      ++at;
      continue;
    }
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {  // no length follows
      at += 2;
      continue;
    }
    const uint64_t length = file.big16(at + 2);
    if (length < 2) return core::format("JPEG segment of length {} at byte {}", length, at);
    if (marker == 0xE1 && file.matches(at + 4, std::string_view("Exif\0\0", 6))) {
      header.orientation = exif_orientation(file.part(at + 10, length - 8));
    }
    // Start of frame: SOF0..SOF15 without DHT, JPG and DAC, which lie between.
    if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) {
      if (!file.has(at, 10)) return "JPEG cut short inside its header";
      header.height = static_cast<int>(file.big16(at + 5));
      header.width = static_cast<int>(file.big16(at + 7));
      header.channels = static_cast<int>(file.u8(at + 9));
      return "";
    }
    if (marker == 0xDA || marker == 0xD9) return "JPEG without a frame header";
    at += 2 + length;
  }
  return "JPEG cut short inside its header";
}

std::string read_png_header(const ByteView& file, ImageHeader& header) {
  if (!file.has(0, 33) || !file.matches(12, "IHDR")) return "PNG cut short inside its header";
  const uint32_t width = file.big32(16), height = file.big32(20), color = file.u8(25);
  if (width > 0x7FFFFFFF || height > 0x7FFFFFFF) return "PNG header with a size out of range";
  header.width = static_cast<int>(width);
  header.height = static_cast<int>(height);
  header.channels = color == 0 ? 1 : color == 4 || color == 6 ? 4 : 3;
  for (uint64_t at = 33; file.has(at, 8) && !file.matches(at + 4, "IDAT");) {
    if (file.matches(at + 4, "eXIf")) header.orientation = exif_orientation(file.part(at + 8, file.big32(at)));
    at += 12 + uint64_t{file.big32(at)};
  }
  return "";
}

std::string read_bmp_header(const ByteView& file, ImageHeader& header) {
  if (!file.has(0, 30)) return "BMP cut short inside its header";
  const bool core_header = file.little32(14) == 12;
  int64_t width = core_header ? file.little16(18) : static_cast<int32_t>(file.little32(18));
  int64_t height = core_header ? file.little16(20) : static_cast<int32_t>(file.little32(22));
  height = std::abs(height);  // negative: stored top-down
  if (width < 0 || height > 0x7FFFFFFF) return "BMP header with a size out of range";
  header.width = static_cast<int>(width);
  header.height = static_cast<int>(height);
  header.channels = file.little16(core_header ? 24 : 28) == 32 ? 4 : 3;
  return "";
}

std::string read_webp_header(const ByteView& file, ImageHeader& header) {
  if (!file.has(0, 30)) return "WebP cut short inside its header";
  header.channels = 3;
  if (file.matches(12, "VP8X")) {
    header.width = static_cast<int>(file.little24(24)) + 1;
    header.height = static_cast<int>(file.little24(27)) + 1;
    if ((file.u8(20) & 0x10) != 0) header.channels = 4;
    for (uint64_t at = 30; file.has(at, 8);) {
      const uint64_t length = file.little32(at + 4);
      if (file.matches(at, "EXIF")) {
        // Some writers put JPEG's "Exif\0\0" before the TIFF structure.
        const uint64_t skip = file.matches(at + 8, "Exif") ? 6 : 0;
        header.orientation = exif_orientation(file.part(at + 8 + skip, length));
      }
      at += 8 + length + (length & 1);
    }
    return "";
  }
  if (file.matches(12, "VP8 ") && file.matches(23, "\x9D\x01\x2A")) {
    header.width = static_cast<int>(file.little16(26) & 0x3FFF);
    header.height = static_cast<int>(file.little16(28) & 0x3FFF);
    return "";
  }
  if (file.matches(12, "VP8L") && file.u8(20) == 0x2F) {
    const uint32_t bits = file.little32(21);
    header.width = static_cast<int>(bits & 0x3FFF) + 1;
    header.height = static_cast<int>(bits >> 14 & 0x3FFF) + 1;
    if ((bits >> 28 & 1) != 0) header.channels = 4;
    return "";
  }
  return "WebP with an unknown kind of content";
}

/// The first image of the file, of the kinds that are read: gray, RGB, RGBA or a palette, 8 or 16 bits, upright.
std::string read_tiff_header(const ByteView& tiff, ImageHeader& header) {
  TiffDirectory directory;
  if (std::string reason = read_tiff_directory(tiff, directory); !reason.empty()) return reason;
  constexpr uint64_t kGray = 1, kPalette = 3, kLargestTile = 8192;
  const uint64_t samples = directory.samples, kind = directory.colour_kind;
  if (directory.bits != 8 && directory.bits != 16) {
    return core::format("TIFF with {} bits is not read, only 8 or 16", directory.bits);
  }
  if (directory.format != 1) return "TIFF of numbers that are no whole ones is not read";
  if (kind < kGray || kind > kPalette) return core::format("TIFF of colour kind {} is not read", kind);
  if (samples != 1 && samples != 3 && samples != 4) {
    return core::format("TIFF of {} channels is not read among images of 1, 3 or 4", samples);
  }
  if (directory.orientation != 1) return core::format("TIFF with orientation {} is not read", directory.orientation);
  if (directory.width > 0x7FFFFFFF || directory.height > 0x7FFFFFFF) return "TIFF header with a size out of range";
  const uint64_t tile = std::max(directory.tile_width, directory.tile_height);
  if (tile > kLargestTile) return core::format("TIFF with tiles of {} pixels is not read", tile);
  header.width = static_cast<int>(directory.width);
  header.height = static_cast<int>(directory.height);
  header.channels = kind == kPalette ? 3 : static_cast<int>(samples);
  return "";
}

std::string size_trouble(const ImageHeader& header, const DecodeLimits& limits) {
  if (header.width < 1 || header.height < 1) {
    return core::format("its header says {}x{} pixels", header.width, header.height);
  }
  if (header.width > limits.max_side || header.height > limits.max_side) {
    return core::format("its header says {}x{} pixels; a side may have {} at most", header.width, header.height,
                        limits.max_side);
  }
  const double megapixels = 1e-6 * header.width * header.height;
  if (megapixels > limits.max_megapixels) {
    return core::format("its header says {}x{} = {:.1f} megapixels, more than --max-image-megapixels {:g}",
                        header.width, header.height, megapixels, limits.max_megapixels);
  }
  return "";
}

}  // namespace

std::string read_header(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits, ImageHeader& header) {
  header = ImageHeader();
  if (size == 0) return "empty file";
  const ByteView file(bytes, size);
  header.format = sniffed_format(file);
  std::string reason;
  switch (header.format) {
    case ImageFormat::unknown: return unsupported_reason(file);
    case ImageFormat::jpeg: reason = read_jpeg_header(file, header); break;
    case ImageFormat::png: reason = read_png_header(file, header); break;
    case ImageFormat::bmp: reason = read_bmp_header(file, header); break;
    case ImageFormat::webp: reason = read_webp_header(file, header); break;
    case ImageFormat::tiff: reason = read_tiff_header(file, header); break;
  }
  if (reason.empty()) reason = size_trouble(header, limits);
  if (header.orientation >= 5) std::swap(header.width, header.height);
  return reason;
}

}  // namespace stoker::data
