// SPDX-License-Identifier: Apache-2.0
// Pictures of TIFF files: what their samples mean.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/format.h"
#include "data/image/decoders.h"
#include "data/image/pixels/image_buffer.h"
#include "data/image/tiff/tiff_file.h"

namespace stoker::data {
namespace {

constexpr uint64_t kWhiteIsZero = 0, kGray = 1, kRgb = 2, kPalette = 3, kInks = 5, kYcbcr = 6;
constexpr uint64_t kUnsigned = 1, kSigned = 2, kFloat = 3, kJpeg = 7, kAssociatedAlpha = 1;

const char* colour_name(uint64_t kind) {
  switch (kind) {
    case 4: return "a mask";
    case 8: return "CIELab colours";
    case 9: return "ICCLab colours";
    case 10: return "ITULab colours";
    case 32803: return "a camera's raw data (CFA)";
    case 32844: return "LogL brightness";
    case 32845: return "LogLuv colours";
    case 34892: return "a camera's raw data (LinearRaw)";
    default: return nullptr;
  }
}

uint64_t colours_of(uint64_t kind) { return kind == kInks ? 4 : kind == kRgb || kind == kYcbcr ? 3 : 1; }

bool is_read_bits(const TiffDirectory& tiff) {
  if (tiff.format == kFloat) return tiff.bits == 16 || tiff.bits == 32 || tiff.bits == 64;
  if (tiff.format == kSigned) return tiff.bits == 8 || tiff.bits == 16 || tiff.bits == 32;
  return tiff.bits <= 16 || tiff.bits == 32;
}

std::string converted_by(const std::string& what,
                         const char* command = "convert FILE -colorspace sRGB -depth 8 FILE.png") {
  return core::format("TIFF of {} is not read; convert it: {}", what, command);
}

/// The reason why a file gives no picture of 1, 3 or 4 channels.
std::string unread_tiff(const TiffDirectory& tiff) {
  const char* const colours = colour_name(tiff.colour_kind);
  if (colours != nullptr) {
    const bool is_raw = tiff.colour_kind == 32803 || tiff.colour_kind == 34892;
    // As OpenCV writes floats. ImageMagick and GraphicsMagick give other colours.
    if (tiff.colour_kind == 32845) {
      return converted_by(colours,
                          "python3 -c \"import cv2, sys; cv2.imwrite(sys.argv[2], cv2.imread(sys.argv[1], "
                          "cv2.IMREAD_UNCHANGED), [cv2.IMWRITE_TIFF_COMPRESSION, 1])\" FILE FILE.tif");
    }
    return is_raw ? converted_by(colours, "dcraw_emu -T FILE") : converted_by(colours);
  }
  if (tiff.colour_kind > kYcbcr || tiff.colour_kind == 4) {
    return converted_by(core::format("colour kind {}", tiff.colour_kind));
  }
  if (tiff.format < kUnsigned || tiff.format > kFloat) return converted_by("complex numbers");
  const char* const kind = tiff.format == kFloat ? "floats" : tiff.format == kSigned ? "signed numbers" : "numbers";
  if (!is_read_bits(tiff)) return converted_by(core::format("{} of {} bits", kind, tiff.bits));
  const uint64_t colours_stored = colours_of(tiff.colour_kind);
  if (tiff.colour_kind == kInks && tiff.inks != 1)
    return converted_by("inks that are not cyan, magenta, yellow and black");
  if (tiff.samples < colours_stored) return core::format("damaged TIFF: {} channels for its colours", tiff.samples);
  const uint64_t more = tiff.samples - colours_stored;
  if (more > 1 && tiff.extra < 0) {
    return core::format("TIFF of {} channels is not read as a picture; files of many bands are a data set of their own",
                        tiff.samples);
  }
  if (more > 3) {
    return core::format("TIFF of {} channels is not read as a picture; files of many bands are a data set of their own",
                        tiff.samples);
  }
  if (tiff.colour_kind == kPalette && (tiff.bits > 8 || tiff.format != kUnsigned)) {
    return converted_by(core::format("a palette of {} bits", tiff.bits));
  }
  if (tiff.colour_kind == kYcbcr && (tiff.bits != 8 || tiff.samples != 3)) {
    return converted_by(core::format("YCbCr colours in {} channels of {} bits", tiff.samples, tiff.bits));
  }
  if (tiff.width > 0x7FFFFFFF || tiff.height > 0x7FFFFFFF) return "TIFF header with a size out of range";
  return "";
}

/// The range of a kind of number that is black to white.
std::pair<double, double> whole_range(const TiffDirectory& tiff) {
  if (tiff.format == kFloat) return {0, 1};
  const double values = static_cast<double>(uint64_t{1} << tiff.bits);
  return tiff.format == kSigned ? std::pair(-values / 2, values / 2 - 1) : std::pair(0.0, values - 1);
}

float float_of_half(uint16_t half) {
  const int exponent = half >> 10 & 0x1F;
  const auto fraction = static_cast<float>(half & 0x3FF);
  float value = 0;
  if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else {
    value = std::ldexp(fraction + 1024, exponent - 25);
  }
  return half >> 15 != 0 ? -value : value;
}

template <typename Value>
double number_at(const uint8_t* row, uint64_t i) {
  Value value;
  std::memcpy(&value, row + i * sizeof value, sizeof value);
  return static_cast<double>(value);
}

/// Samples of a picture, as they lie in a row of a strip or tile, to 8 bits each.
class SampleReader8 {
 public:
  SampleReader8(const TiffDirectory& tiff, const DecodeLimits& limits)
      : tiff_(tiff),
        is_palette_(tiff.colour_kind == kPalette),
        has_range_(limits.range.is_set() || limits.seen != nullptr),
        colours_(wide() ? limits.range : ValueRange(), whole_range(tiff).first, whole_range(tiff).second,
                 wide() ? limits.seen : nullptr),
        alpha_({}, tiff.format == kSigned ? 0 : whole_range(tiff).first, whole_range(tiff).second) {}

  /// `first`: which sample of a pixel the first one is; `here`: how many of a pixel there are. The `count` samples
  /// stand in `row` itself or in `out`.
  const uint8_t* read(const uint8_t* row, uint64_t count, uint64_t first, uint64_t here, uint8_t* out) {
    if (tiff_.bits == 8 && tiff_.format == kUnsigned) return row;
    if (tiff_.bits == 16 && tiff_.format == kUnsigned && here + first <= colours_of(tiff_.colour_kind)) {
      colours_.row_of_16(row, static_cast<int64_t>(count), out);
      return out;
    }
    for (uint64_t i = 0; i < count; ++i) {
      const bool is_alpha = first + i % here >= colours_of(tiff_.colour_kind);
      const double value = value_at(row, i);
      if (tiff_.format == kFloat && !is_alpha) note(value);
      out[i] = is_palette_ && !is_alpha ? static_cast<uint8_t>(value) : (is_alpha ? alpha_ : colours_).of(value);
    }
    return out;
  }

  /// Floats whose black and white nobody gave.
  std::string problem() const {
    if (tiff_.format != kFloat || has_range_ || (lowest_ >= 0 && highest_ <= 1)) return "";
    return core::format(
        "TIFF of floats from {:g} to {:g}, not from 0 to 1; give the numbers of black and white: "
        "--input-range LOW,HIGH",
        lowest_, highest_);
  }

 private:
  bool wide() const { return tiff_.bits > 8 || tiff_.format == kFloat; }
  void note(double value) {
    lowest_ = std::min(lowest_, value);
    highest_ = std::max(highest_, value);
  }
  double value_at(const uint8_t* row, uint64_t i) const {
    if (tiff_.format == kFloat) {
      if (tiff_.bits == 64) return number_at<double>(row, i);
      if (tiff_.bits == 32) return static_cast<double>(number_at<float>(row, i));
      uint16_t half = 0;
      std::memcpy(&half, row + 2 * i, sizeof half);
      return static_cast<double>(float_of_half(half));
    }
    const bool has_sign = tiff_.format == kSigned;
    switch (tiff_.bits) {
      case 8: return has_sign ? number_at<int8_t>(row, i) : number_at<uint8_t>(row, i);
      case 16: return has_sign ? number_at<int16_t>(row, i) : number_at<uint16_t>(row, i);
      case 32: return has_sign ? number_at<int32_t>(row, i) : number_at<uint32_t>(row, i);
      default: return bits_at(row, i);
    }
  }
  /// The first bit of a byte is the topmost.
  double bits_at(const uint8_t* row, uint64_t i) const {
    uint32_t value = 0;
    for (uint64_t bit = i * tiff_.bits; bit < (i + 1) * tiff_.bits; ++bit) {
      value = value << 1 | (row[bit / 8] >> (7 - bit % 8) & 1u);
    }
    return value;
  }

  const TiffDirectory& tiff_;
  const bool is_palette_, has_range_;
  const EightBits colours_, alpha_;
  double lowest_ = 0, highest_ = 0;
};

/// Rows of 8-bit samples to gray or RGB, by the colours of the file.
class ColourMeaning {
 public:
  ColourMeaning(const TiffFile& file, int channels) : tiff_(file.directory()), channels_(channels) {
    if (tiff_.colour_kind != kPalette) return;
    palette_ = file.palette();
    // Old writers filled the low bytes alone.
    const bool are_bytes = std::all_of(palette_.begin(), palette_.end(), [](const auto& colour) {
      return std::max({colour[0], colour[1], colour[2]}) < 256;
    });
    if (are_bytes) {
      for (auto& colour : palette_) {
        for (uint16_t& value : colour) value = static_cast<uint16_t>(value << 8);
      }
    }
  }
  bool lacks_palette() const { return tiff_.colour_kind == kPalette && palette_.empty(); }

  /// `samples` of each of `width` pixels.
  void convert(const uint8_t* row, uint64_t width, uint8_t* out) {
    const uint64_t stored = colours_of(tiff_.colour_kind), samples = tiff_.samples;
    const bool has_alpha = samples > stored && tiff_.extra != 0;
    const uint64_t seen = (tiff_.colour_kind == kGray || tiff_.colour_kind == kWhiteIsZero ? 1u : 3u);
    const uint64_t kept = seen + (has_alpha ? 1 : 0);
    const bool over_black = has_alpha && tiff_.extra != static_cast<int64_t>(kAssociatedAlpha);
    const bool as_stored = (tiff_.colour_kind == kGray || tiff_.colour_kind == kRgb) && samples == kept;
    if (as_stored) {
      convert_row(row, static_cast<int64_t>(width), static_cast<int>(kept), over_black, channels_, out);
      return;
    }
    pixels_.resize(width * kept);
    uint8_t* to = pixels_.data();
    for (uint64_t x = 0; x < width; ++x, row += samples) {
      switch (tiff_.colour_kind) {
        case kWhiteIsZero: *to++ = static_cast<uint8_t>(255 - row[0]); break;
        case kGray: *to++ = row[0]; break;
        case kPalette:
          for (int c = 0; c < 3; ++c) {
            *to++ = row[0] < palette_.size() ? static_cast<uint8_t>(palette_[row[0]][static_cast<size_t>(c)] >> 8) : 0;
          }
          break;
        case kInks:
          inks_to_rgb(row, to);
          to += 3;
          break;
        default: to = std::copy_n(row, 3, to); break;
      }
      if (has_alpha) *to++ = row[stored];
    }
    convert_row(pixels_.data(), static_cast<int64_t>(width), static_cast<int>(kept), over_black, channels_, out);
  }

 private:
  const TiffDirectory& tiff_;
  const int channels_;
  std::vector<std::array<uint16_t, 3>> palette_;
  std::vector<uint8_t> pixels_;
};

}  // namespace

std::string read_tiff_header(const ByteView& bytes, ImageHeader& header) {
  const TiffFile file(bytes.data(), bytes.size());
  if (!file.problem().empty()) return file.problem();
  const TiffDirectory& tiff = file.directory();
  if (std::string reason = unread_tiff(tiff); !reason.empty()) return reason;
  header.width = static_cast<int>(tiff.width);
  header.height = static_cast<int>(tiff.height);
  header.bits = tiff.colour_kind == kPalette ? 8 : static_cast<int>(std::max<uint64_t>(tiff.bits, 8));
  header.orientation = static_cast<int>(tiff.orientation);
  const bool is_gray = tiff.colour_kind <= kGray;
  const bool has_alpha = tiff.samples > colours_of(tiff.colour_kind) && tiff.extra != 0;
  header.channels = has_alpha ? 4 : is_gray ? 1 : 3;
  return "";
}

std::string decode_tiff(const ByteView& bytes, const ImageHeader& header, int channels, const DecodeLimits& limits,
                        ImageBuffer& out) {
  TiffFile file(bytes.data(), bytes.size());
  if (!file.problem().empty()) return file.problem();
  const TiffDirectory& tiff = file.directory();
  ColourMeaning meaning(file, channels);
  if (meaning.lacks_palette()) return "damaged TIFF: a palette without colours";
  start_image(header.width, header.height, channels, out);
  // A strip or tile may be larger than the picture, but not beyond what a picture may have.
  const auto most_pixels = static_cast<uint64_t>(std::clamp(limits.max_megapixels, 1.0, 1e6) * 1e6);
  const uint64_t most_bytes = std::max<uint64_t>(most_pixels, 1 << 22) * 4 * std::max<uint64_t>(1, tiff.bits / 8);
  std::vector<uint8_t> piece;
  if (tiff.colour_kind == kYcbcr && tiff.compression != kJpeg) {
    return file.read_converted(piece, most_bytes, [&](const TiffPiece& part) {
      for (uint64_t y = 0; y < part.rows; ++y) {
        convert_row(part.data + y * part.row_bytes, static_cast<int64_t>(part.columns), 4, false, channels,
                    row_of(out, static_cast<int64_t>(part.top + y)) + part.left * static_cast<uint64_t>(channels));
      }
    });
  }
  SampleReader8 reader(tiff, limits);
  const bool has_planes = tiff.planes == 2;
  const uint64_t here = has_planes ? 1 : tiff.samples;
  std::vector<uint8_t> samples(has_planes ? tiff.width * tiff.height * tiff.samples : 0), row;
  std::string reason = file.read(piece, most_bytes, [&](const TiffPiece& part) {
    row.resize(part.columns * here);
    for (uint64_t y = 0; y < part.rows; ++y) {
      const uint8_t* const read =
          reader.read(part.data + y * part.row_bytes, part.columns * here, part.plane, here, row.data());
      if (!has_planes) {
        meaning.convert(read, part.columns,
                        row_of(out, static_cast<int64_t>(part.top + y)) + part.left * static_cast<uint64_t>(channels));
        continue;
      }
      uint8_t* to = samples.data() + ((part.top + y) * tiff.width + part.left) * tiff.samples + part.plane;
      for (uint64_t x = 0; x < part.columns; ++x, to += tiff.samples) *to = read[x];
    }
  });
  if (reason.empty()) reason = reader.problem();
  if (!reason.empty() || !has_planes) return reason;
  for (uint64_t y = 0; y < tiff.height; ++y) {
    meaning.convert(samples.data() + y * tiff.width * tiff.samples, tiff.width, row_of(out, static_cast<int64_t>(y)));
  }
  return "";
}

}  // namespace stoker::data
