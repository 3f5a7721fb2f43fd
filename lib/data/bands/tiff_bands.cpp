// SPDX-License-Identifier: Apache-2.0
#include "data/bands/tiff_bands.h"

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/format.h"
#include "data/bands/band_file.h"

namespace stoker::data {
namespace {

/// A file in memory, and what libtiff says of it first.
struct TiffMemory {
  const uint8_t* bytes;
  uint64_t size;
  uint64_t at = 0;
  std::array<char, 200> said{};
};

TiffMemory& memory_of(thandle_t handle) { return *static_cast<TiffMemory*>(handle); }

tmsize_t read_some(thandle_t handle, void* out, tmsize_t count) {
  TiffMemory& memory = memory_of(handle);
  if (count <= 0 || memory.at >= memory.size) return 0;
  const uint64_t taken = std::min(static_cast<uint64_t>(count), memory.size - memory.at);
  std::memcpy(out, memory.bytes + memory.at, taken);
  memory.at += taken;
  return static_cast<tmsize_t>(taken);
}
tmsize_t write_none(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek_to(thandle_t handle, toff_t offset, int whence) {
  TiffMemory& memory = memory_of(handle);
  memory.at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? memory.at + offset : memory.size + offset;
  return memory.at;
}
int close_nothing(thandle_t) { return 0; }
toff_t size_of_file(thandle_t handle) { return memory_of(handle).size; }

#if TIFFLIB_VERSION >= 20221213  // 4.5: handlers and limits of one file
int keep_error(TIFF*, void* user, const char*, const char* text, va_list arguments) {
  TiffMemory& memory = *static_cast<TiffMemory*>(user);
  if (memory.said[0] == 0) std::vsnprintf(memory.said.data(), memory.said.size(), text, arguments);
  return 1;
}
/// Tags that it does not know, say: what is missing is met as an error.
int keep_quiet(TIFF*, void*, const char*, const char*, va_list) { return 1; }

TIFF* open_tiff(TiffMemory& memory, uint64_t most_memory) {
  TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(most_memory));
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, &memory);
  TIFFOpenOptionsSetWarningHandlerExtR(options, keep_quiet, nullptr);
  TIFF* const tiff = TIFFClientOpenExt("", "rm", &memory, read_some, write_none, seek_to, close_nothing, size_of_file,
                                       nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
  return tiff;
}
#else
TIFF* open_tiff(TiffMemory& memory, uint64_t) {
  static const bool is_quiet = [] {
    TIFFSetErrorHandler(nullptr);
    TIFFSetWarningHandler(nullptr);
    return true;
  }();
  (void)is_quiet;
  return TIFFClientOpen("", "rm", &memory, read_some, write_none, seek_to, close_nothing, size_of_file, nullptr,
                        nullptr);
}
#endif

bool is_read(uint64_t compression) {
  constexpr std::array<uint64_t, 6> kRead = {COMPRESSION_NONE,     COMPRESSION_LZW,     COMPRESSION_ADOBE_DEFLATE,
                                             COMPRESSION_PACKBITS, COMPRESSION_DEFLATE, COMPRESSION_ZSTD};
  return std::find(kRead.begin(), kRead.end(), compression) != kRead.end();
}

/// The library must see what was checked.
bool sees_the_same(TIFF* tiff, const TiffDirectory& directory) {
  uint32_t width = 0, height = 0;
  uint16_t bits = 0, samples = 0, planes = 0, compression = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planes);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
  return width == directory.width && height == directory.height && bits == directory.bits &&
         samples == directory.samples && planes == directory.planes && compression == directory.compression &&
         (TIFFIsTiled(tiff) != 0) == (directory.tile_width > 0);
}

/// Reads strips or tiles of one open file.
class PieceReader {
 public:
  PieceReader(TIFF* tiff, const TiffDirectory& directory, std::vector<uint8_t>& piece, uint8_t* out)
      : tiff_(tiff),
        piece_(piece),
        out_(out),
        width_(directory.width),
        height_(directory.height),
        number_(directory.bits / 8),
        samples_(directory.samples),
        planes_(directory.planes == PLANARCONFIG_SEPARATE ? directory.samples : 1),
        pixel_(directory.samples / planes_ * number_) {
    if (directory.tile_width > 0) {
      piece_width_ = directory.tile_width;
      piece_height_ = directory.tile_height;
      return;
    }
    uint32_t rows = 0;
    TIFFGetFieldDefaulted(tiff_, TIFFTAG_ROWSPERSTRIP, &rows);
    piece_width_ = width_;
    piece_height_ = std::min<uint64_t>(rows, height_);
  }

  /// False: a piece is missing or damaged.
  bool read_all() {
    const bool is_tiled = TIFFIsTiled(tiff_) != 0;
    if (piece_width_ == 0 || piece_height_ == 0) return false;
    for (uint64_t plane = 0; plane < planes_; ++plane) {
      for (uint64_t top = 0; top < height_; top += piece_height_) {
        for (uint64_t left = 0; left < width_; left += piece_width_) {
          // Of a damaged deflate stream that says too much libtiff may leave out a part: not what was here before.
          piece_.assign(piece_width_ * piece_height_ * pixel_, 0);
          if (!(is_tiled ? read_tile(left, top, plane) : read_strip(top, plane))) return false;
          place(left, top, plane);
        }
      }
    }
    return true;
  }

 private:
  bool read_strip(uint64_t top, uint64_t plane) {
    const auto wanted = static_cast<tmsize_t>(std::min(piece_height_, height_ - top) * width_ * pixel_);
    const uint32_t strip = TIFFComputeStrip(tiff_, static_cast<uint32_t>(top), static_cast<uint16_t>(plane));
    return TIFFReadEncodedStrip(tiff_, strip, piece_.data(), wanted) == wanted;
  }
  bool read_tile(uint64_t left, uint64_t top, uint64_t plane) {
    const auto wanted = static_cast<tmsize_t>(piece_.size());
    if (TIFFTileSize(tiff_) != wanted) return false;
    const uint32_t tile = TIFFComputeTile(tiff_, static_cast<uint32_t>(left), static_cast<uint32_t>(top), 0,
                                          static_cast<uint16_t>(plane));
    return TIFFReadEncodedTile(tiff_, tile, piece_.data(), wanted) == wanted;
  }

  /// What the image has of the piece.
  void place(uint64_t left, uint64_t top, uint64_t plane) const {
    const uint64_t rows = std::min(piece_height_, height_ - top), columns = std::min(piece_width_, width_ - left);
    for (uint64_t y = 0; y < rows; ++y) {
      const uint8_t* from = piece_.data() + y * piece_width_ * pixel_;
      uint8_t* to = out_ + (((top + y) * width_ + left) * samples_ + plane) * number_;
      if (planes_ == 1) {
        std::memcpy(to, from, columns * pixel_);
        continue;
      }
      for (uint64_t x = 0; x < columns; ++x) std::memcpy(to + x * samples_ * number_, from + x * number_, number_);
    }
  }

  TIFF* const tiff_;
  std::vector<uint8_t>& piece_;
  uint8_t* const out_;
  const uint64_t width_, height_, number_, samples_, planes_;
  const uint64_t pixel_;  ///< bytes of a pixel within a piece
  uint64_t piece_width_ = 0, piece_height_ = 0;
};

}  // namespace

std::string read_tiff_bands(const uint8_t* bytes, uint64_t size, const TiffDirectory& directory,
                            std::vector<uint8_t>& piece, uint8_t* out) {
  if (!is_read(directory.compression)) {
    return core::format("TIFF of many bands with compression {} is not read", directory.compression);
  }
  constexpr uint64_t kOwnNeeds = 16 << 20;
  const uint64_t pixel = directory.samples * directory.bits / 8;
  const uint64_t largest = std::max(directory.width * directory.height, directory.tile_width * directory.tile_height);
  TiffMemory memory{bytes, size};
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff(open_tiff(memory, largest * pixel + size + kOwnNeeds), TIFFClose);
  const auto because = [&](const char* otherwise) {
    return core::format("damaged TIFF: {}",
                        memory.said[0] == 0 ? std::string(otherwise) : core::printable(memory.said.data()));
  };
  if (tiff == nullptr) return because("it cannot be opened");
  if (!sees_the_same(tiff.get(), directory)) return because("its directory can be read in two ways");
  if (!PieceReader(tiff.get(), directory, piece, out).read_all()) return because("a part of it is missing");
  return "";
}

}  // namespace stoker::data
