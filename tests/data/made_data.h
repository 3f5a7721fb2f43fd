// SPDX-License-Identifier: Apache-2.0
// The data of this module's tests: temporary folders, and image files with known pixels.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/options.h"
#include "core/error.h"

namespace stoker::data {

using Bytes = std::vector<uint8_t>;

/// A folder that goes away with its content.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder& operator=(TempFolder&&) = delete;  // not copied, not moved

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and the folders above it; returns its path.
  std::string write(const std::string& name, const Bytes& content) const;
  std::string write(const std::string& name, const std::string& content) const;
  std::string make_folder(const std::string& name) const;

 private:
  std::string path_;
};

/// HWC pixels that differ from place to place and channel to channel.
Bytes pattern_pixels(int width, int height, int channels);
/// 32-bit digest of bytes: s = 31 s + byte.
uint32_t byte_digest(const uint8_t* bytes, size_t count);

/// Lossless files; `pixels` are HWC, gray, RGB or RGBA.
Bytes png_of(const Bytes& pixels, int width, int height, int channels);
Bytes png16_of(const std::vector<uint16_t>& pixels, int width, int height, int channels);
Bytes bmp_of(const Bytes& pixels, int width, int height, int channels);
Bytes webp_of(const Bytes& pixels, int width, int height, int channels);

struct JpegRecipe {
  int channels = 3;  ///< 1 gray, 3 RGB, 4 CMYK
  bool progressive = false;
  bool adobe_marker = false;  ///< CMYK: as Photoshop writes it, to be read as inverted inks
  int quality = 95;
  int luma_columns = 2, luma_rows = 2;  ///< pixels of brightness per pixel of colour: 2 x 2 is 4:2:0
  int restart_rows = 0;
  bool optimized = false;  ///< Huffman codes made for the image
  bool ycck = false;       ///< CMYK: with colours as YCC
  int restart_blocks = 0;  ///< MCUs between restart markers, where restart_rows is 0
};
Bytes jpeg_of(const Bytes& pixels, int width, int height, const JpegRecipe& recipe = {});
/// A TIFF structure with an orientation tag only, little-endian.
Bytes exif_with_orientation(int orientation);
Bytes jpeg_with_exif(const Bytes& jpeg, int orientation);
/// Puts a chunk with a right checksum after IHDR.
Bytes png_with_chunk(const Bytes& png, const std::string& name, const Bytes& content);

/// A PNG of 1 bit per pixel; `rows` are filter bytes and packed pixels, `palette` is RGB.
Bytes palette_png(uint32_t width, uint32_t height, const Bytes& palette, const Bytes& rows);
/// A BMP of 32 bits per pixel, with an alpha mask or without; `pixels` are BGRA, bottom-up.
Bytes bmp32_of(uint32_t width, uint32_t height, const Bytes& pixels, bool alpha_mask);

struct StillFrame {
  int left, top, width, height;  ///< left and top even
  Bytes webp;                    ///< a still file
};
Bytes animated_webp(int width, int height, const std::vector<StillFrame>& frames);

Bytes idx_images(uint32_t count, uint32_t height, uint32_t width, const Bytes& pixels, uint32_t magic = 0x803);
Bytes idx_labels(uint32_t count, const Bytes& labels, uint32_t magic = 0x801);
Bytes gzipped(const Bytes& content);

/// A flat image of one colour.
Bytes flat_pixels(int width, int height, const Bytes& colour);

/// Runs `action` and returns what it threw; fails the test when it threw nothing.
core::Error error_of(const std::function<void()>& action);

}  // namespace stoker::data
