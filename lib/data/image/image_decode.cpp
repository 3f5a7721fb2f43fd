// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "data/image/decode.h"
#include "data/image/decoders.h"
#include "data/image/jpeg/jpeg_decode.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {
namespace {

bool lies_inside(const Region& region, const ImageHeader& image) {
  return region.left >= 0 && region.top >= 0 && region.width > 0 && region.height > 0 &&
         region.left + region.width <= image.width && region.top + region.height <= image.height;
}

/// As stored, of every format but JPEG.
std::string decode_stored(const ByteView& file, const ImageHeader& header, int channels, const DecodeLimits& limits,
                          ImageBuffer& out) {
  switch (header.format) {
    case ImageFormat::png: return decode_png(file, header, channels, limits, out);
    case ImageFormat::bmp: return decode_bmp(file, header, channels, out);
    case ImageFormat::tiff: return decode_tiff(file, header, channels, limits, out);
    case ImageFormat::pnm: return decode_pnm(file, header, channels, limits, out);
    case ImageFormat::gif: return decode_gif(file, header, channels, out);
    default: return decode_with_opencv(file, header, channels, limits, out);
  }
}

}  // namespace

bool can_decode_rows(const ImageHeader& header, const Region& wanted) {
  return header.format == ImageFormat::jpeg && header.orientation == 1 && lies_inside(wanted, header);
}

std::string decode_rows(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                        const Region& wanted, RowSink& rows) {
  return decode_jpeg(bytes, size, channels, limits, wanted, rows);
}

std::string decode_region(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                          const ImageHeader& header, Region& wanted, ImageBuffer& out) {
  const Region whole{0, 0, header.width, header.height};
  if (header.format == ImageFormat::jpeg && header.orientation == 1) {
    if (!lies_inside(wanted, header)) wanted = whole;
    return decode_jpeg(bytes, size, channels, limits, wanted, out);
  }
  wanted = whole;
  std::string reason;
  if (header.format == ImageFormat::jpeg) {
    Region stored = whole;
    if (header.orientation >= 5) std::swap(stored.width, stored.height);
    reason = decode_jpeg(bytes, size, channels, limits, stored, out);
  } else {
    ImageHeader stored = header;
    if (header.orientation >= 5) std::swap(stored.width, stored.height);
    reason = decode_stored({bytes, size}, stored, channels, limits, out);
  }
  if (reason.empty()) apply_orientation(header.orientation, out);
  return reason;
}

std::string decode_image(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                         ImageBuffer& out) {
  ImageHeader header;
  if (std::string reason = read_header(bytes, size, limits, header); !reason.empty()) return reason;
  Region whole{0, 0, header.width, header.height};
  return decode_region(bytes, size, channels, limits, header, whole, out);
}

// Formats by their first bytes, sizes from their headers, orientation from EXIF: no pixel is touched here.

namespace {

/// Markers are found as libjpeg finds them: what stands between two segments is passed over. EXIF may stand behind the
/// frame header, too.
std::string read_jpeg_header(const ByteView& file, ImageHeader& header) {
  bool has_exif = false, has_frame = false;
  for (uint64_t at = 2; file.has(at, 4);) {
    if (file.u8(at) != 0xFF || file.u8(at + 1) == 0xFF || file.u8(at + 1) == 0) {
      ++at;
      continue;
    }
    const uint32_t marker = file.u8(at + 1);
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {  // no length follows
      at += 2;
      continue;
    }
    const uint64_t length = file.big16(at + 2);
    if (marker == 0xE1 && !has_exif && file.matches(at + 4, std::string_view("Exif\0", 5)) && length > 8) {
      has_exif = true;
      // Pillow takes none from EXIF that begins otherwise.
      const bool is_read = file.matches(at + 4, std::string_view("Exif\0\0", 6));
      header.orientation = is_read ? std::max(1, exif_orientation(file.part(at + 10, length - 8))) : 1;
    }
    // Start of frame: SOF0..SOF15 without DHT, JPG and DAC, which lie between.
    const bool is_frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame && !has_frame) {
      if (!file.has(at, 10)) return "JPEG cut short inside its header";
      header.height = static_cast<int>(file.big16(at + 5));
      header.width = static_cast<int>(file.big16(at + 7));
      header.channels = static_cast<int>(file.u8(at + 9));
      const bool is_plain = marker <= 0xC2 || marker == 0xC9 || marker == 0xCA;
      if (!is_plain) return "lossless or hierarchical JPEG is not read; convert it: ffmpeg -i FILE FILE.png";
      if (file.u8(at + 4) > 8) {
        return core::format("JPEG of {} bits is not read; convert it: gdal_translate -of PNG FILE FILE.png",
                            file.u8(at + 4));
      }
      has_frame = true;
    }
    if (marker == 0xDA || marker == 0xD9) return has_frame ? "" : "JPEG without a frame header";
    at += 2 + std::max<uint64_t>(length, 2);
  }
  return has_frame ? "" : "JPEG cut short inside its header";
}

/// The text of a PNG chunk tEXt, zTXt or iTXt with this keyword; empty: it has another, or is damaged.
std::string png_text(const ByteView& chunk, std::string_view kind, std::string_view keyword) {
  constexpr size_t kMostText = 1 << 20;
  if (!chunk.matches(0, keyword) || chunk.u8(keyword.size()) != 0) return "";
  uint64_t at = keyword.size() + 1;
  bool is_packed = kind == "zTXt";
  if (kind == "zTXt") ++at;
  if (kind == "iTXt") {
    is_packed = chunk.u8(at) == 1;
    at += 2;
    for (int field = 0; field < 2; ++field) {  // language, translated keyword
      while (chunk.has(at, 1) && chunk.u8(at) != 0) ++at;
      ++at;
    }
  }
  const ByteView rest = chunk.part(at, chunk.size());
  std::string text(reinterpret_cast<const char*>(rest.data()), std::min<size_t>(rest.size(), kMostText));
  if (!is_packed) return text;
  text.resize(kMostText);
  auto size = static_cast<uLongf>(text.size());
  const int end =
      ::uncompress(reinterpret_cast<Bytef*>(text.data()), &size, rest.data(), static_cast<uLong>(rest.size()));
  text.resize(end == Z_OK ? size : 0);
  return text;
}

/// EXIF as ImageMagick writes it into text: three lines, then digits.
int raw_profile_orientation(const std::string& text) {
  size_t at = 0;
  for (int line = 0; line < 3 && at != std::string::npos; ++line) at = text.find('\n', line == 0 ? 0 : at + 1);
  std::vector<uint8_t> bytes;
  uint32_t half = 0;
  bool has_half = false;
  for (size_t i = at; i < text.size(); ++i) {
    const int digit = text[i] >= '0' && text[i] <= '9'   ? text[i] - '0'
                      : text[i] >= 'a' && text[i] <= 'f' ? text[i] - 'a' + 10
                                                         : -1;
    if (digit < 0) continue;
    if (has_half) bytes.push_back(static_cast<uint8_t>(half << 4 | static_cast<uint32_t>(digit)));
    half = static_cast<uint32_t>(digit);
    has_half = !has_half;
  }
  const ByteView exif(bytes.data(), bytes.size());
  return exif_orientation(exif.matches(0, "Exif") ? exif.part(6, exif.size()) : exif);
}

/// Orientation as Pillow finds it: EXIF, before or behind the pixels, as a chunk or as text, else XMP.
int png_orientation(const ByteView& file) {
  int exif = 0, raw = 0, xmp = 0;
  bool has_exif = false;
  for (uint64_t at = 33; file.has(at, 8);) {
    const ByteView chunk = file.part(at + 8, file.big32(at));
    if (file.matches(at + 4, "eXIf")) {
      has_exif = true;
      exif = exif_orientation(chunk.matches(0, "Exif") ? chunk.part(6, chunk.size()) : chunk);
    }
    for (const char* kind : {"tEXt", "zTXt", "iTXt"}) {
      if (!file.matches(at + 4, kind)) continue;
      if (const std::string text = png_text(chunk, kind, "Raw profile type exif"); !text.empty()) {
        raw = raw_profile_orientation(text);
      }
      if (kind[0] != 'i') continue;
      if (const std::string text = png_text(chunk, kind, "XML:com.adobe.xmp"); !text.empty()) {
        xmp = xmp_orientation({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
      }
    }
    at += 12 + uint64_t{file.big32(at)};
  }
  const int first = has_exif ? exif : raw;
  return std::max(1, first != 0 ? first : xmp);
}

std::string read_png_header(const ByteView& file, ImageHeader& header) {
  if (file.matches(12, "CgBI")) {
    return "PNG as Xcode makes it for iPhones (CgBI) is not read; convert it on a Mac: xcrun -sdk iphoneos pngcrush "
           "-revert-iphone-optimizations FILE FILE.png";
  }
  if (!file.has(0, 33) || !file.matches(12, "IHDR")) return "PNG cut short inside its header";
  const uint32_t width = file.big32(16), height = file.big32(20), color = file.u8(25);
  if (width > 0x7FFFFFFF || height > 0x7FFFFFFF) return "PNG header with a size out of range";
  header.width = static_cast<int>(width);
  header.height = static_cast<int>(height);
  header.channels = color == 0 ? 1 : color == 4 || color == 6 ? 4 : 3;
  header.bits = file.u8(24) == 16 ? 16 : 8;
  header.orientation = png_orientation(file);
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
        header.orientation = std::max(1, exif_orientation(file.part(at + 8 + skip, length)));
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

std::string size_problem(const ImageHeader& header, const DecodeLimits& limits) {
  if (header.width < 1 || header.height < 1) {
    return core::format("its header gives {}x{} pixels", header.width, header.height);
  }
  if (header.width > limits.max_side || header.height > limits.max_side) {
    return core::format("its header gives {}x{} pixels; a side may have {} at most", header.width, header.height,
                        limits.max_side);
  }
  const double megapixels = 1e-6 * header.width * header.height;
  if (megapixels > limits.max_megapixels) {
    return core::format("its header gives {}x{} = {:.1f} megapixels, more than --max-image-megapixels {:g}",
                        header.width, header.height, megapixels, limits.max_megapixels);
  }
  return "";
}

}  // namespace

std::string read_header(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits, ImageHeader& header) {
  header = ImageHeader();
  if (size == 0) return "empty file";
  const ByteView file(bytes, size);
  header.format = image_format(file);
  std::string reason;
  switch (header.format) {
    case ImageFormat::unknown: return unread_kind(file);
    case ImageFormat::jpeg: reason = read_jpeg_header(file, header); break;
    case ImageFormat::png: reason = read_png_header(file, header); break;
    case ImageFormat::bmp: reason = read_bmp_header(file, header); break;
    case ImageFormat::webp: reason = read_webp_header(file, header); break;
    case ImageFormat::tiff: reason = read_tiff_header(file, header); break;
    case ImageFormat::pnm: reason = read_pnm_header(file, header); break;
    case ImageFormat::gif: reason = read_gif_header(file, header); break;
    case ImageFormat::jpeg2000: reason = read_jpeg2000_header(file, header); break;
  }
  if (reason.empty()) reason = size_problem(header, limits);
  if (header.orientation >= 5) std::swap(header.width, header.height);
  return reason;
}

namespace {

template <typename Number, typename Bits>
Number number_of_bits(Bits bits) {
  static_assert(sizeof(Number) == sizeof(Bits));
  Number number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

}  // namespace

int exif_orientation(const ByteView& exif) {
  const bool little = exif.matches(0, "II");
  if (!little && !exif.matches(0, "MM")) return 0;
  const auto u16 = [&](uint64_t at) { return little ? exif.little16(at) : exif.big16(at); };
  const auto u32 = [&](uint64_t at) { return little ? exif.little32(at) : exif.big32(at); };
  constexpr uint32_t kOrientationTag = 0x0112, kRational = 5, kSignedRational = 10, kFloatType = 11, kDoubleType = 12;
  // Bytes of each type that Pillow has. A number is none to it where it is a BYTE, a text or of no meaning.
  constexpr std::array<uint32_t, 17> kBytes = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
  constexpr std::array<bool, 17> kIsNumber = {false, false, false, true, true, true,  true,  false, true,
                                              true,  true,  true,  true, true, false, false, false};
  const uint64_t directory = u32(4);
  const uint32_t entries = u16(directory);
  int found = 0;
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * uint64_t{i};
    if (!exif.has(entry, 12)) break;
    const uint32_t type = u16(entry + 2), bytes = type < kBytes.size() ? kBytes[type] : 0;
    const uint64_t size = uint64_t{bytes} * u32(entry + 4);
    if (size == 0) continue;
    const uint64_t at = size > 4 ? u32(entry + 8) : entry + 8;  // of the first, where several
    if (!exif.has(at, size)) break;                             // Pillow reads no entry behind such a one
    if (u16(entry) != kOrientationTag) continue;
    double value = bytes == 1 ? exif.u8(at) : bytes == 2 ? u16(at) : u32(at);
    if (type == kRational || type == kSignedRational) value /= u32(at + 4);
    if (type == kFloatType) value = static_cast<double>(number_of_bits<float>(u32(at)));
    if (type == kDoubleType)
      value = number_of_bits<double>(uint64_t{u32(little ? at + 4 : at)} << 32 | u32(little ? at : at + 4));
    const bool is_one = kIsNumber[type] && value >= 1 && value <= 8 && value == std::floor(value);
    found = is_one ? static_cast<int>(value) : 1;
  }
  return found;
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
