// SPDX-License-Identifier: Apache-2.0
// Images side by side with captions, as one PNG. Works on pixels and text, whatever their origin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stoker::data {

struct SheetTile {
  std::vector<uint8_t> pixels;  ///< height x width x channels, HWC; gray or RGB
  std::string caption;          ///< below it, cut to the width of the tile
};

/// Tiles of one size in rows, under headings. Small images are enlarged by a whole factor, pixel by pixel.
class ContactSheet {
 public:
  /// `height`, `width`: pixels of the images, `channels`: 1 or 3, `columns`: tiles in a row.
  ContactSheet(int64_t height, int64_t width, int64_t channels, int64_t columns);

  void add_heading(const std::string& text);
  /// Fills rows from the left; a heading begins a new one.
  void add_tile(SheetTile tile);

  int64_t width() const;   ///< pixels
  int64_t height() const;  ///< pixels, with all that was added so far
  /// The file's bytes. Throws Error{bug} when it cannot be encoded.
  std::string png() const;

 private:
  struct Row {
    std::string heading;  ///< else tiles
    std::vector<SheetTile> tiles;
  };
  int64_t tile_height() const { return height_ * factor_; }
  int64_t tile_width() const { return std::max(kLeastTile, width_ * factor_); }  ///< with space for a caption
  int64_t row_pixels(const Row& row) const;

  static constexpr int64_t kLeastTile = 96;  ///< pixels

  const int64_t height_, width_, channels_, columns_, factor_;
  std::vector<Row> rows_;
};

// Writing PNG files through OpenCV, and which OpenCV that is.

/// 8-bit PNG of packed pixels, 1 (gray) or 3 (RGB) channels. Throws core::Error{bug}, std::bad_alloc.
void encode_png(const uint8_t* pixels, int width, int height, int channels, std::vector<uint8_t>& out);

/// "OpenCV 4.6.0": other releases decode some files to other pixels.
std::string image_library_text();

}  // namespace stoker::data
