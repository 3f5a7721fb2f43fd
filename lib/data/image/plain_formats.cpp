// SPDX-License-Identifier: Apache-2.0
// Formats without a library: BMP of Windows and OS/2, and the PNM family.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/format.h"
#include "data/image/decoders.h"
#include "data/image/pixels/image_buffer.h"

namespace stoker::data {
namespace {

// BMP ------------------------------------------------------------------------------------------------------------

enum BmpCompression : uint32_t {
  kRaw = 0,
  kRle8 = 1,
  kRle4 = 2,
  kMasks = 3,
  kJpegInside = 4,
  kPngInside = 5,
  kAlphaMasks = 6
};

struct BmpHeader {
  uint64_t width = 0, height = 0;
  bool is_top_down = false;
  uint32_t bits = 0, compression = kRaw;
  uint64_t palette_at = 0, colours = 0, colour_bytes = 4, pixels_at = 0;
  std::array<uint32_t, 4> masks{};  ///< red, green, blue, alpha
  int samples() const { return masks[3] != 0 ? 4 : 3; }
};

/// The mask of one channel of a pixel of 16 or 32 bits.
struct Mask {
  explicit Mask(uint32_t bits) : mask(bits) {
    while (bits != 0 && (bits & 1) == 0) {
      bits >>= 1;
      ++shift;
    }
    largest = bits;
  }
  uint8_t of(uint32_t pixel) const {
    if (largest == 0) return 0;
    const uint64_t value = (pixel & mask) >> shift;
    // Few bits are rounded down, as in Pillow.
    return static_cast<uint8_t>((value * 255 + (largest > 255 ? largest / 2 : 0)) / largest);
  }
  uint32_t mask = 0, largest = 0;
  int shift = 0;
};

std::string parse_bmp(const ByteView& file, BmpHeader& bmp) {
  const uint64_t header_bytes = file.little32(14);
  const bool is_core = header_bytes == 12;
  if (!file.has(0, 14 + header_bytes) || !file.has(0, 26)) return "BMP cut short inside its header";
  const int64_t height = is_core ? int64_t{file.little16(20)} : int64_t{static_cast<int32_t>(file.little32(22))};
  const int64_t width = is_core ? int64_t{file.little16(18)} : int64_t{static_cast<int32_t>(file.little32(18))};
  if (width < 0) return "BMP header with a size out of range";
  bmp.width = static_cast<uint64_t>(width);
  bmp.height = static_cast<uint64_t>(std::abs(height));
  bmp.is_top_down = height < 0;
  bmp.bits = file.little16(is_core ? 24 : 28);
  // Headers of OS/2 may end after any field from 16 bytes on; what is missing is 0.
  bmp.compression = header_bytes >= 20 ? file.little32(30) : static_cast<uint32_t>(kRaw);
  const bool is_of_windows = header_bytes == 40 || header_bytes == 52 || header_bytes == 56 || header_bytes >= 108;
  if (!is_of_windows && bmp.compression >= kMasks) {
    return core::format("BMP of OS/2 with compression {} is not read; convert it: convert FILE FILE.png",
                        bmp.compression);
  }
  if (bmp.compression == kJpegInside || bmp.compression == kPngInside) {
    return core::format("BMP that holds a {} is not read; convert it: convert FILE FILE.png",
                        bmp.compression == kJpegInside ? "JPEG" : "PNG");
  }
  const bool is_known = bmp.compression <= kMasks || bmp.compression == kAlphaMasks;
  const std::array<uint32_t, 7> depths = {1, 2, 4, 8, 16, 24, 32};
  if (!is_known || std::find(depths.begin(), depths.end(), bmp.bits) == depths.end()) {
    return core::format("BMP of {} bits with compression {} is not read; convert it: convert FILE FILE.png", bmp.bits,
                        bmp.compression);
  }
  const bool has_masks = bmp.compression == kMasks || bmp.compression == kAlphaMasks;
  if ((bmp.compression == kRle8 && bmp.bits != 8) || (bmp.compression == kRle4 && bmp.bits != 4) ||
      (has_masks && bmp.bits < 16)) {
    return core::format("damaged BMP: compression {} with {} bits", bmp.compression, bmp.bits);
  }
  if (bmp.bits == 16) bmp.masks = {0x7C00, 0x3E0, 0x1F, 0};
  if (bmp.bits == 32) bmp.masks = {0xFF0000, 0xFF00, 0xFF, 0};
  if (has_masks && bmp.bits != 24) {
    const bool has_alpha = header_bytes >= 56 || bmp.compression == kAlphaMasks;
    for (size_t i = 0; i < 4; ++i) bmp.masks[i] = i < 3 || has_alpha ? file.little32(54 + 4 * i) : 0;
    if (bmp.masks == std::array<uint32_t, 4>{}) {  // some writers leave them out
      bmp.masks = {0xFF0000, 0xFF00, 0xFF, 0xFF000000};
      if (bmp.bits == 16) bmp.masks = {0x7C00, 0x3E0, 0x1F, 0};
    }
    for (const uint32_t mask : bmp.masks) {
      const uint32_t largest = Mask(mask).largest;
      if ((largest & (largest + 1)) != 0) return "damaged BMP: a mask of colours with gaps";
    }
    if (bmp.bits == 16 && Mask(bmp.masks[3]).largest == 1) bmp.masks[3] = 0;  // one bit of alpha is ignored by Pillow
  }
  const uint64_t masks_behind = has_masks && header_bytes == 40 ? (bmp.compression == kAlphaMasks ? 16 : 12) : 0;
  bmp.palette_at = 14 + header_bytes + masks_behind;
  bmp.colour_bytes = is_core ? 3 : 4;
  bmp.pixels_at = file.little32(10);
  if (bmp.bits <= 8) {
    bmp.colours = header_bytes >= 36 ? file.little32(46) : 0;
    if (bmp.colours == 0) bmp.colours = uint64_t{1} << bmp.bits;
    if (bmp.colours > 65536) return core::format("damaged BMP: a palette of {} colours", bmp.colours);
    if (!file.has(bmp.palette_at, bmp.colours * bmp.colour_bytes)) return "BMP cut short inside its palette";
  }
  // Some writers leave the place of the pixels out, or forget the palette in it.
  if (bmp.pixels_at == 0 || (bmp.bits <= 8 && bmp.pixels_at == bmp.palette_at)) {
    bmp.pixels_at = bmp.palette_at + bmp.colours * bmp.colour_bytes;
  }
  return "";
}

/// Indices of RLE4 and RLE8; those that the file leaves out are 0. "" or the reason.
std::string unpack_rle(const ByteView& file, const BmpHeader& bmp, std::vector<uint8_t>& indices) {
  const bool is_rle4 = bmp.compression == kRle4;
  indices.assign(bmp.width * bmp.height, 0);
  const uint64_t most_in_row = std::max(bmp.width + 1, (bmp.width + 3) / 4 * 4);
  uint64_t x = 0, y = 0;
  const auto put = [&](uint32_t index) {
    if (x < bmp.width && y < bmp.height) indices[y * bmp.width + x] = static_cast<uint8_t>(index);
    ++x;
  };
  for (uint64_t at = bmp.pixels_at; y < bmp.height;) {
    // One more than a row has is what some writers make of an odd width; others pad rows to a multiple of 4.
    if (x > most_in_row) return "damaged BMP: a row of it has more pixels than the image is wide";
    if (!file.has(at, 2)) {
      // The end mark of the last row is missing where all pixels are there.
      return y + 1 == bmp.height && x >= bmp.width ? "" : core::format("BMP cut short: {} bytes", file.size());
    }
    const uint32_t count = file.u8(at), value = file.u8(at + 1);
    at += 2;
    if (count > 0) {
      for (uint32_t i = 0; i < count; ++i) put(!is_rle4 ? value : i % 2 == 0 ? value >> 4 : value & 15);
    } else if (value == 0) {
      x = 0;
      ++y;
    } else if (value == 1) {
      return "";
    } else if (value == 2) {
      if (!file.has(at, 2)) return core::format("BMP cut short: {} bytes", file.size());
      x += file.u8(at);
      y += file.u8(at + 1);
      at += 2;
    } else {
      const uint64_t stored = is_rle4 ? (value + 1) / 2 : value;
      if (!file.has(at, stored)) return core::format("BMP cut short: {} bytes", file.size());
      for (uint32_t i = 0; i < value; ++i) {
        put(!is_rle4 ? file.u8(at + i) : i % 2 == 0 ? file.u8(at + i / 2) >> 4 : file.u8(at + i / 2) & 15);
      }
      at += stored + (stored & 1);
    }
  }
  return "";
}

/// Rows of RGB or RGBA, 8 bits each.
class BmpRows {
 public:
  BmpRows(const ByteView& file, const BmpHeader& bmp) : file_(file), bmp_(bmp) {
    for (size_t i = 0; i < 4; ++i) masks_.emplace_back(bmp.masks[i]);
    palette_.resize(256 * 3);
    for (size_t i = 0; i < palette_.size(); ++i) palette_[i] = static_cast<uint8_t>(i / 3);  // beyond it, as in Pillow
    for (uint64_t i = 0; i < std::min<uint64_t>(bmp.colours, 256); ++i) {
      for (uint64_t c = 0; c < 3; ++c) {
        palette_[i * 3 + c] = static_cast<uint8_t>(file.u8(bmp.palette_at + i * bmp.colour_bytes + 2 - c));
      }
    }
  }

  void read(uint64_t at, uint8_t* out) const {
    const uint8_t* const row = file_.data() + at;
    for (uint64_t x = 0; x < bmp_.width; ++x) {
      switch (bmp_.bits) {
        case 24:
          for (int c = 0; c < 3; ++c) *out++ = row[3 * x + 2 - static_cast<uint64_t>(c)];
          break;
        case 16:
        case 32: {
          const uint32_t pixel = bmp_.bits == 16 ? file_.little16(at + 2 * x) : file_.little32(at + 4 * x);
          for (int c = 0; c < bmp_.samples(); ++c) *out++ = masks_[static_cast<size_t>(c)].of(pixel);
          break;
        }
        default: {
          const uint64_t bit = x * bmp_.bits;
          out = colour(static_cast<uint8_t>(row[bit / 8] >> (8 - bmp_.bits - bit % 8) & ((1u << bmp_.bits) - 1)), out);
        }
      }
    }
  }
  void look_up(const uint8_t* indices, uint8_t* out) const {
    for (uint64_t x = 0; x < bmp_.width; ++x) out = colour(indices[x], out);
  }

 private:
  uint8_t* colour(uint8_t index, uint8_t* out) const {
    return std::copy_n(palette_.data() + size_t{index} * 3, 3, out);
  }

  const ByteView& file_;
  const BmpHeader& bmp_;
  std::vector<Mask> masks_;
  std::vector<uint8_t> palette_;
};

// PNM ------------------------------------------------------------------------------------------------------------

struct PnmHeader {
  int kind = 0;  ///< the digit behind P
  uint64_t width = 0, height = 0, samples = 1, largest = 1, pixels_at = 0;
  bool is_bitmap() const { return kind == 1 || kind == 4; }
};

bool is_blank(uint32_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

/// The next word, comments left out; `at` is then behind the blank that ends it.
std::string next_word(const ByteView& file, uint64_t& at) {
  constexpr size_t kLongestWord = 32;
  std::string word;
  for (; file.has(at, 1) && word.size() < kLongestWord; ++at) {
    const uint32_t byte = file.u8(at);
    if (byte == '#') {
      while (file.has(at + 1, 1) && file.u8(at) != '\n' && file.u8(at) != '\r') ++at;
      if (!word.empty()) return ++at, word;  // the end of the line ends the word
    } else if (!is_blank(byte)) {
      word += static_cast<char>(byte);
    } else if (!word.empty()) {
      ++at;
      return word;
    }
  }
  return word;
}

/// False: not a number of at most 9 digits.
bool next_number(const ByteView& file, uint64_t& at, uint64_t& number) {
  const std::string word = next_word(file, at);
  if (word.empty() || word.size() > 9) return false;
  number = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return true;
}

std::string parse_pam(const ByteView& file, PnmHeader& pnm) {
  pnm.samples = pnm.largest = 0;
  for (uint64_t at = 3;;) {
    const std::string word = next_word(file, at);
    if (word.empty()) return "damaged PAM: its header has no end";
    if (word == "ENDHDR") {
      pnm.pixels_at = at;
      break;
    }
    bool good = true;
    if (word == "WIDTH")
      good = next_number(file, at, pnm.width);
    else if (word == "HEIGHT")
      good = next_number(file, at, pnm.height);
    else if (word == "DEPTH")
      good = next_number(file, at, pnm.samples);
    else if (word == "MAXVAL")
      good = next_number(file, at, pnm.largest);
    else if (word != "TUPLTYPE")
      good = false;
    else {
      const std::string type = next_word(file, at);
      if (type.substr(0, 4) != "GRAY" && type.substr(0, 3) != "RGB" && type.substr(0, 13) != "BLACKANDWHITE") {
        return core::format("PAM of {} is not read; convert it: convert FILE FILE.png", core::printable(type));
      }
    }
    if (!good) return core::format("damaged PAM: {} in its header", core::printable(word));
  }
  if (pnm.samples >= 1 && pnm.samples <= 4) return "";
  return core::format("PAM of {} channels is not read; convert it: convert FILE FILE.png", pnm.samples);
}

std::string parse_pnm(const ByteView& file, PnmHeader& pnm) {
  pnm.kind = static_cast<int>(file.u8(1)) - '0';
  if (pnm.kind == 7) {
    if (std::string reason = parse_pam(file, pnm); !reason.empty()) return reason;
  } else {
    uint64_t at = 2;
    pnm.samples = pnm.kind == 3 || pnm.kind == 6 ? 3 : 1;
    bool good = next_number(file, at, pnm.width) && next_number(file, at, pnm.height);
    if (!pnm.is_bitmap()) good = good && next_number(file, at, pnm.largest);
    if (!good) return "damaged PNM: a header without its numbers";
    pnm.pixels_at = at;
  }
  if (pnm.largest < 1 || pnm.largest > 65535) return core::format("damaged PNM: white is {}", pnm.largest);
  if (pnm.width > 0x7FFFFFFF || pnm.height > 0x7FFFFFFF) return "PNM header with a size out of range";
  return "";
}

/// A row of numbers of plain text; false where one is missing or too large.
bool read_plain_row(const ByteView& file, const PnmHeader& pnm, uint64_t& at, std::vector<uint16_t>& row) {
  for (uint16_t& value : row) {
    if (pnm.kind == 1) {  // digits need no blanks between them
      while (file.has(at, 1) && (is_blank(file.u8(at)) || file.u8(at) == '#')) {
        if (file.u8(at) == '#') {
          while (file.has(at, 1) && file.u8(at) != '\n' && file.u8(at) != '\r') ++at;
        } else {
          ++at;
        }
      }
      const uint32_t digit = file.u8(at++);
      if (digit != '0' && digit != '1') return false;
      value = static_cast<uint16_t>(digit - '0');
      continue;
    }
    uint64_t number = 0;
    if (!next_number(file, at, number) || number > pnm.largest) return false;
    value = static_cast<uint16_t>(number);
  }
  return true;
}

}  // namespace

std::string read_bmp_header(const ByteView& file, ImageHeader& header) {
  BmpHeader bmp;
  if (std::string reason = parse_bmp(file, bmp); !reason.empty()) return reason;
  if (bmp.height > 0x7FFFFFFF) return "BMP header with a size out of range";
  header.width = static_cast<int>(bmp.width);
  header.height = static_cast<int>(bmp.height);
  header.channels = bmp.bits == 32 ? 4 : bmp.samples();
  return "";
}

std::string decode_bmp(const ByteView& file, const ImageHeader& header, int channels, ImageBuffer& out) {
  BmpHeader bmp;
  if (std::string reason = parse_bmp(file, bmp); !reason.empty()) return reason;
  const bool is_packed = bmp.compression == kRle8 || bmp.compression == kRle4;
  const uint64_t row_bytes = (bmp.width * bmp.bits + 31) / 32 * 4;
  std::vector<uint8_t> indices;
  if (is_packed) {
    if (std::string reason = unpack_rle(file, bmp, indices); !reason.empty()) return reason;
  } else {
    // The padding of the last row is left out by some writers.
    const uint64_t promised = bmp.pixels_at + row_bytes * (bmp.height - 1) + (bmp.width * bmp.bits + 7) / 8;
    if (promised > file.size()) return core::format("BMP cut short: {} of {} bytes", file.size(), promised);
  }
  start_image(header.width, header.height, channels, out);
  const BmpRows rows(file, bmp);
  std::vector<uint8_t> row(bmp.width * 4);
  for (uint64_t y = 0; y < bmp.height; ++y) {
    if (is_packed) {
      rows.look_up(indices.data() + y * bmp.width, row.data());
    } else {
      rows.read(bmp.pixels_at + y * row_bytes, row.data());
    }
    convert_row(row.data(), static_cast<int64_t>(bmp.width), bmp.samples(), true, channels,
                row_of(out, static_cast<int64_t>(bmp.is_top_down ? y : bmp.height - 1 - y)));
  }
  return "";
}

std::string read_pnm_header(const ByteView& file, ImageHeader& header) {
  PnmHeader pnm;
  if (std::string reason = parse_pnm(file, pnm); !reason.empty()) return reason;
  header.width = static_cast<int>(pnm.width);
  header.height = static_cast<int>(pnm.height);
  header.channels = pnm.samples == 1 ? 1 : pnm.samples == 3 ? 3 : 4;
  header.bits = pnm.largest > 255 ? 16 : 8;
  return "";
}

std::string decode_pnm(const ByteView& file, const ImageHeader& header, int channels, const DecodeLimits& limits,
                       ImageBuffer& out) {
  PnmHeader pnm;
  if (std::string reason = parse_pnm(file, pnm); !reason.empty()) return reason;
  const bool is_plain = pnm.kind <= 3, is_wide = pnm.largest > 255;
  const uint64_t row_numbers = pnm.width * pnm.samples;
  const uint64_t row_bytes = pnm.kind == 4 ? (pnm.width + 7) / 8 : row_numbers * (is_wide ? 2 : 1);
  const uint64_t least =
      is_plain ? (pnm.kind == 1 ? row_numbers : 2 * row_numbers - 1) * pnm.height : row_bytes * pnm.height;
  if (!file.has(pnm.pixels_at, is_plain ? std::min(least, row_numbers * pnm.height) : least)) {
    return core::format("PNM cut short: {} bytes", file.size());
  }
  start_image(header.width, header.height, channels, out);
  const EightBits colours(is_wide ? limits.range : ValueRange(), 0, static_cast<double>(pnm.largest),
                          is_wide ? limits.seen : nullptr);
  const EightBits alpha({}, 0, static_cast<double>(pnm.largest));
  std::vector<uint16_t> numbers(row_numbers);
  std::vector<uint8_t> row(row_numbers);
  for (uint64_t y = 0, at = pnm.pixels_at; y < pnm.height; ++y) {
    if (is_plain) {
      if (!read_plain_row(file, pnm, at, numbers)) return core::format("damaged PNM: no number at byte {}", at);
    } else {
      for (uint64_t i = 0; i < row_numbers; ++i) {
        numbers[i] = static_cast<uint16_t>(pnm.kind == 4 ? file.u8(at + i / 8) >> (7 - i % 8) & 1
                                           : is_wide     ? file.big16(at + 2 * i)
                                                         : file.u8(at + i));
      }
      at += row_bytes;
    }
    for (uint64_t i = 0; i < row_numbers; ++i) {
      const bool is_alpha = pnm.samples % 2 == 0 && i % pnm.samples == pnm.samples - 1;
      const uint16_t value = pnm.is_bitmap() ? static_cast<uint16_t>(1 - numbers[i]) : numbers[i];
      row[i] = (is_alpha ? alpha : colours).of(value);
    }
    convert_row(row.data(), static_cast<int64_t>(pnm.width), static_cast<int>(pnm.samples), true, channels,
                row_of(out, static_cast<int64_t>(y)));
  }
  return "";
}

}  // namespace stoker::data
