// SPDX-License-Identifier: Apache-2.0
#include "data/image/tiff/tiff_file.h"

#include <tiffio.h>
#include <zlib.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>

#include "core/format.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {

/// A file in memory, and the first error that libtiff reports of it.
struct TiffMemory {
  const uint8_t* bytes;
  uint64_t size;
  uint64_t at = 0;
  bool is_decoding = false;  ///< warnings about a directory are not damage
  std::array<char, 200> message{};
  TIFF* tiff = nullptr;
};

namespace {

/// The limit for single allocations of libtiff beside the size of the file: tables, and buffers of single codecs.
constexpr uint64_t kOwnNeeds = 512 << 20;

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

int keep_error(TIFF*, void* user, const char*, const char* text, va_list arguments) {
  TiffMemory& memory = *static_cast<TiffMemory*>(user);
  if (memory.message[0] == 0) std::vsnprintf(memory.message.data(), memory.message.size(), text, arguments);
  return 1;
}
/// Warnings of the decoders of JPEG and fax count: pixels are made up from there on.
int keep_damage(TIFF* tiff, void* user, const char* module, const char* text, va_list arguments) {
  const std::string_view from = module == nullptr ? "" : module;
  const bool counts = from.substr(0, 7) == "JPEGLib" || from.substr(0, 3) == "Fax";
  if (counts && static_cast<TiffMemory*>(user)->is_decoding) keep_error(tiff, user, module, text, arguments);
  return 1;
}

TIFF* open_tiff(TiffMemory& memory) {
  TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(memory.size + kOwnNeeds));
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, &memory);
  TIFFOpenOptionsSetWarningHandlerExtR(options, keep_damage, &memory);
  TIFF* const tiff = TIFFClientOpenExt("", "rm", &memory, read_some, write_none, seek_to, close_nothing, size_of_file,
                                       nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
  return tiff;
}

/// A reduced copy of another picture (a preview), or a mask.
bool is_secondary(TIFF* tiff) {
  uint32_t kind = 0;
  uint16_t old_kind = 0;
  if (TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind) != 0 && (kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0) {
    return true;
  }
  return TIFFGetField(tiff, TIFFTAG_OSUBFILETYPE, &old_kind) != 0 && old_kind == OFILETYPE_REDUCEDIMAGE;
}

/// Whether the directory at hand has the tag: libtiff fills in some that are missing.
bool has_tag(const TiffMemory& memory, uint32_t wanted) {
  const ByteView file(memory.bytes, memory.size);
  const bool is_little = TIFFIsBigEndian(memory.tiff) == 0, is_big_tiff = TIFFIsBigTIFF(memory.tiff) != 0;
  const auto u16 = [&](uint64_t at) { return is_little ? file.little16(at) : file.big16(at); };
  const uint64_t start = TIFFCurrentDirOffset(memory.tiff);
  const uint64_t count = u16(is_big_tiff && !is_little ? start + 6 : start);
  const uint64_t first = start + (is_big_tiff ? 8 : 2), entry_bytes = is_big_tiff ? 20 : 12;
  for (uint64_t i = 0; i < count; ++i) {
    if (u16(first + i * entry_bytes) == wanted) return true;
  }
  return false;
}

}  // namespace

TiffFile::TiffFile(const uint8_t* bytes, uint64_t size) : memory_(std::make_unique<TiffMemory>()) {
  memory_->bytes = bytes;
  memory_->size = size;
  memory_->tiff = open_tiff(*memory_);
  if (memory_->tiff == nullptr) {
    problem_ = damage("it cannot be opened");
    return;
  }
  choose_picture();
  if (problem_.empty()) read_directory();
}

TiffFile::~TiffFile() {
  if (memory_->tiff != nullptr) TIFFClose(memory_->tiff);
}

std::string TiffFile::damage(const char* otherwise) const {
  std::string text = core::printable(memory_->message.data());
  text.erase(0, text.find_first_not_of(": "));  // behind the name of the file, which libtiff is not given
  constexpr std::string_view kNoRow = " at scanline 4294967295";  // where libtiff has not begun a row
  if (const size_t at = text.find(kNoRow); at != std::string::npos) text.erase(at, kNoRow.size());
  return core::format("damaged TIFF: {}", text.empty() ? otherwise : text);
}

/// The first directory, unless it is a preview: then the next that is none, or one below the preview, as cameras write.
void TiffFile::choose_picture() {
  constexpr int kMostDirectories = 64;
  TIFF* const tiff = memory_->tiff;
  if (!is_secondary(tiff)) return;
  uint16_t below = 0;
  uint64_t* places = nullptr;
  std::vector<uint64_t> subdirectories;
  if (TIFFGetField(tiff, TIFFTAG_SUBIFD, &below, &places) != 0 && places != nullptr) {
    subdirectories.assign(places, places + std::min<int>(below, kMostDirectories));
  }
  for (const uint64_t place : subdirectories) {
    if (TIFFSetSubDirectory(tiff, place) != 0 && !is_secondary(tiff)) return;
  }
  if (!subdirectories.empty() && TIFFSetDirectory(tiff, 0) == 0) {
    problem_ = damage("its directory cannot be read twice");
    return;
  }
  for (int i = 1; i < kMostDirectories && TIFFReadDirectory(tiff) != 0; ++i) {
    if (!is_secondary(tiff)) return;
  }
  memory_->message[0] = 0;
  if (TIFFSetDirectory(tiff, 0) == 0) problem_ = damage("its directory cannot be read twice");
}

void TiffFile::read_directory() {
  TIFF* const tiff = memory_->tiff;
  memory_->message[0] = 0;
  uint32_t width = 0, height = 0;
  uint16_t bits = 1, samples = 1, planes = 1, compression = 1, format = 1, colour_kind = 0, orientation = 1, extras = 0;
  uint16_t inks = INKSET_CMYK;
  uint16_t* kinds = nullptr;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planes);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_INKSET, &inks);
  if (TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &colour_kind) == 0) {
    colour_kind = samples >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK;
  }
  directory_.width = width;
  directory_.height = height;
  directory_.bits = bits;
  directory_.samples = samples;
  directory_.planes = samples == 1 ? PLANARCONFIG_CONTIG : planes;
  directory_.compression = compression;
  directory_.format = format == SAMPLEFORMAT_VOID ? SAMPLEFORMAT_UINT : format;
  directory_.colour_kind = colour_kind;
  directory_.orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
  directory_.inks = inks;
  const bool has_extras = has_tag(*memory_, TIFFTAG_EXTRASAMPLES);
  if (has_extras && TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extras, &kinds) != 0 && extras > 0) {
    directory_.extra = kinds[0];
  }
  // Three samples of "gray" are what some writers make of colours.
  if (colour_kind == PHOTOMETRIC_MINISBLACK && samples == 3 && directory_.extra <= 0) {
    directory_.colour_kind = PHOTOMETRIC_RGB;
    directory_.extra = -1;
  }
  if (TIFFIsTiled(tiff) != 0) {
    uint32_t tile_width = 0, tile_height = 0;
    TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &tile_width);
    TIFFGetField(tiff, TIFFTAG_TILELENGTH, &tile_height);
    directory_.tile_width = tile_width;
    directory_.tile_height = tile_height;
  }
}

std::vector<std::array<uint16_t, 3>> TiffFile::palette() const {
  uint16_t *red = nullptr, *green = nullptr, *blue = nullptr;
  if (directory_.bits > 16 || TIFFGetField(memory_->tiff, TIFFTAG_COLORMAP, &red, &green, &blue) == 0) return {};
  std::vector<std::array<uint16_t, 3>> colours(size_t{1} << directory_.bits);
  for (size_t i = 0; i < colours.size(); ++i) colours[i] = {red[i], green[i], blue[i]};
  return colours;
}

/// Deflated data ends with a checksum, which libtiff does not look at where damage makes more of it than a strip holds.
bool TiffFile::fits_checksum(uint32_t piece, const std::vector<uint8_t>& decoded, uint64_t row_bytes) const {
  TIFF* const tiff = memory_->tiff;
  const uint64_t compression = directory_.compression;
  if (compression != COMPRESSION_ADOBE_DEFLATE && compression != COMPRESSION_DEFLATE) return true;
  const uint64_t begin = TIFFGetStrileOffset(tiff, piece), count = TIFFGetStrileByteCount(tiff, piece);
  const ByteView stored = ByteView(memory_->bytes, memory_->size).part(begin, count);
  uint16_t predictor = PREDICTOR_NONE, order = FILLORDER_MSB2LSB;
  TIFFGetField(tiff, TIFFTAG_PREDICTOR, &predictor);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_FILLORDER, &order);
  if (order != FILLORDER_MSB2LSB || stored.size() < 4) return true;
  uLong sum = ::adler32(0, nullptr, 0);
  if (predictor == PREDICTOR_NONE && (directory_.bits <= 8 || TIFFIsByteSwapped(tiff) == 0)) {
    sum = ::adler32_z(sum, decoded.data(), decoded.size());
  } else if (predictor == PREDICTOR_HORIZONTAL && directory_.bits == 8) {
    const uint64_t here = directory_.planes == PLANARCONFIG_SEPARATE ? 1 : directory_.samples;
    std::vector<uint8_t> differences(row_bytes);
    for (uint64_t at = 0; at + row_bytes <= decoded.size(); at += row_bytes) {
      const uint8_t* const row = decoded.data() + at;
      for (uint64_t i = 0; i < row_bytes; ++i)
        differences[i] = static_cast<uint8_t>(row[i] - (i < here ? 0 : row[i - here]));
      sum = ::adler32(sum, differences.data(), static_cast<uInt>(row_bytes));
    }
  } else {
    sum = ~uLong{stored.big32(stored.size() - 4)};
  }
  if (sum == stored.big32(stored.size() - 4)) return true;
  // Some writers store more rows than the last strip has, or bytes behind it: zlib compares then.
  z_stream zip{};
  if (::inflateInit(&zip) != Z_OK) throw std::bad_alloc();
  std::vector<uint8_t> ignored(1 << 16);
  zip.next_in = const_cast<uint8_t*>(stored.data());
  zip.avail_in = static_cast<uInt>(stored.size());
  int end = Z_OK;
  for (uint64_t made = 0; end == Z_OK && made <= decoded.size() + kOwnNeeds / 8; made = zip.total_out) {
    zip.next_out = ignored.data();
    zip.avail_out = static_cast<uInt>(ignored.size());
    end = ::inflate(&zip, Z_NO_FLUSH);
  }
  ::inflateEnd(&zip);
  return end == Z_STREAM_END;
}

std::string TiffFile::read(std::vector<uint8_t>& scratch, uint64_t most_bytes,
                           const std::function<void(const TiffPiece&)>& take) {
  TIFF* const tiff = memory_->tiff;
  const TiffDirectory& picture = directory_;
  if (TIFFIsCODECConfigured(static_cast<uint16_t>(picture.compression)) == 0) {
    return core::format("TIFF packed by {}, which this libtiff does not read; convert it: tiffcp -c lzw FILE FILE.tif",
                        tiff_compression_name(picture.compression));
  }
  memory_->is_decoding = true;
  if (picture.compression == COMPRESSION_JPEG && picture.colour_kind == PHOTOMETRIC_YCBCR) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  }
  const bool is_tiled = TIFFIsTiled(tiff) != 0;
  uint32_t strip_rows = 0;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &strip_rows);
  const uint64_t width = is_tiled ? picture.tile_width : picture.width;
  const uint64_t height = is_tiled ? picture.tile_height : std::min<uint64_t>(strip_rows, picture.height);
  const uint64_t planes = picture.planes == PLANARCONFIG_SEPARATE ? picture.samples : 1;
  const uint64_t row_bytes = (width * (picture.samples / planes) * picture.bits + 7) / 8;
  if (width == 0 || height == 0) return damage("strips without rows");
  // White lines of fax are the densest that there is: no file holds more.
  constexpr uint64_t kMostBytesPerByte = 1 << 16;
  if (row_bytes * height / kMostBytesPerByte > memory_->size)
    return damage("its header gives more than the file can hold");
  if (row_bytes * height > most_bytes) {
    return core::format(
        "TIFF with strips or tiles of {}x{} pixels, too large to read; convert it: tiffcp -r 16 FILE FILE.tif", width,
        height);
  }
  for (uint64_t plane = 0; plane < planes; ++plane) {
    for (uint64_t top = 0; top < picture.height; top += height) {
      for (uint64_t left = 0; left < picture.width; left += width) {
        const uint64_t rows = is_tiled ? height : std::min(height, picture.height - top);
        const auto wanted = static_cast<tmsize_t>(rows * row_bytes);
        const auto x = static_cast<uint32_t>(left), y = static_cast<uint32_t>(top);
        const auto sample = static_cast<uint16_t>(plane);
        if ((is_tiled ? TIFFTileSize(tiff) : TIFFVStripSize(tiff, static_cast<uint32_t>(rows))) != wanted) {
          return damage("its pixels are laid out in a way that is not read");
        }
        // libtiff may leave out a part of a damaged stream: not what was here before.
        scratch.assign(static_cast<size_t>(wanted), 0);
        const uint32_t piece = is_tiled ? TIFFComputeTile(tiff, x, y, 0, sample) : TIFFComputeStrip(tiff, y, sample);
        const tmsize_t got = is_tiled ? TIFFReadEncodedTile(tiff, piece, scratch.data(), wanted)
                                      : TIFFReadEncodedStrip(tiff, piece, scratch.data(), wanted);
        if (got != wanted || memory_->message[0] != 0) return damage("a part of it is missing");
        if (!fits_checksum(piece, scratch, row_bytes)) return damage("the checksum of deflated data does not fit");
        take({left, top, plane, std::min(width, picture.width - left), std::min(rows, picture.height - top),
              scratch.data(), row_bytes});
      }
    }
  }
  return "";
}

std::string TiffFile::read_converted(std::vector<uint8_t>& scratch, uint64_t most_bytes,
                                     const std::function<void(const TiffPiece&)>& take) {
  TIFF* const tiff = memory_->tiff;
  memory_->is_decoding = true;
  std::array<char, 1024> why{};
  if (TIFFRGBAImageOK(tiff, why.data()) == 0) return damage(why.data());
  TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);  // turning is done by whoever takes the rows
  const bool is_tiled = TIFFIsTiled(tiff) != 0;
  uint32_t strip_rows = 0;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &strip_rows);
  const uint64_t width = is_tiled ? directory_.tile_width : directory_.width;
  const uint64_t height = is_tiled ? directory_.tile_height : std::min<uint64_t>(strip_rows, directory_.height);
  if (width == 0 || height == 0) return damage("strips without rows");
  if (width * height * 4 > most_bytes) return damage("its strips or tiles are too large to read");
  std::vector<uint32_t> raster(width * height);
  for (uint64_t top = 0; top < directory_.height; top += height) {
    for (uint64_t left = 0; left < directory_.width; left += width) {
      const auto x = static_cast<uint32_t>(left), y = static_cast<uint32_t>(top);
      const bool good = is_tiled ? TIFFReadRGBATileExt(tiff, x, y, raster.data(), 1) != 0
                                 : TIFFReadRGBAStripExt(tiff, y, raster.data(), 1) != 0;
      if (!good || memory_->message[0] != 0) return damage("a part of it is missing");
      const uint64_t columns = std::min(width, directory_.width - left),
                     rows = std::min(height, directory_.height - top);
      scratch.resize(columns * rows * 4);
      for (uint64_t row = 0; row < rows; ++row) {  // libtiff puts the last row first
        const uint32_t* const from = raster.data() + ((is_tiled ? height : rows) - 1 - row) * width;
        for (uint64_t i = 0; i < columns; ++i) {
          uint8_t* const to = scratch.data() + (row * columns + i) * 4;
          to[0] = static_cast<uint8_t>(TIFFGetR(from[i]));
          to[1] = static_cast<uint8_t>(TIFFGetG(from[i]));
          to[2] = static_cast<uint8_t>(TIFFGetB(from[i]));
          to[3] = static_cast<uint8_t>(TIFFGetA(from[i]));
        }
      }
      take({left, top, 0, columns, rows, scratch.data(), columns * 4});
    }
  }
  return "";
}

std::string tiff_compression_name(uint64_t compression) {
  const TIFFCodec* const codec = TIFFFindCODEC(static_cast<uint16_t>(compression));
  return codec != nullptr ? codec->name : core::format("compression {}", compression);
}

}  // namespace stoker::data
