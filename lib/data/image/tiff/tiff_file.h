// SPDX-License-Identifier: Apache-2.0
// One picture of a TIFF file through libtiff, its strips or tiles as they are decoded: the only files that meet
// libtiff.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stoker::data {

/// The tags of a directory; the defaults of TIFF's specification where a tag is missing.
struct TiffDirectory {
  uint64_t width = 0, height = 0;  ///< pixels
  uint64_t bits = 1;               ///< bits per sample
  uint64_t samples = 1;            ///< samples per pixel
  uint64_t colour_kind = 1;        ///< 0 and 1 gray, 2 RGB, 3 palette, 5 CMYK, 6 YCbCr
  uint64_t compression = 1;
  uint64_t planes = 1;  ///< 1 interleaved, 2 one plane per sample
  uint64_t format = 1;  ///< 1 whole numbers without sign, 2 with, 3 floats
  int64_t extra = -1;   ///< the first of the samples beyond the colours: 0 unspecified, 1 and 2 alpha; -1: no tag
  uint64_t inks = 1;    ///< 1 CMYK
  uint64_t orientation = 1;
  uint64_t tile_width = 0, tile_height = 0;  ///< 0: strips
};

/// A decoded strip or tile: what the image has of it.
struct TiffPiece {
  uint64_t left, top, plane, columns, rows;
  const uint8_t* data;
  uint64_t row_bytes;  ///< from one row to the next
};

struct TiffMemory;

class TiffFile {
 public:
  /// Stands at the first picture that is not a preview and no mask; `problem()` where there is none.
  TiffFile(const uint8_t* bytes, uint64_t size);
  ~TiffFile();
  TiffFile& operator=(TiffFile&&) = delete;  // not copied, not moved

  const std::string& problem() const { return problem_; }
  const TiffDirectory& directory() const { return directory_; }
  /// The colours of a palette, 3 x 2^bits values of 16 bits; empty where there are none.
  std::vector<std::array<uint16_t, 3>> palette() const;

  /// Gives every strip or tile to `take`, numbers in this machine's order of bytes; `scratch` holds one. Returns "" or
  /// why not all are there. Memory: one piece of at most `most_bytes`.
  std::string read(std::vector<uint8_t>& scratch, uint64_t most_bytes,
                   const std::function<void(const TiffPiece&)>& take);
  /// The same of colours that libtiff converts: rows of red, green, blue and one byte more.
  std::string read_converted(std::vector<uint8_t>& scratch, uint64_t most_bytes,
                             const std::function<void(const TiffPiece&)>& take);

 private:
  std::string damage(const char* otherwise) const;
  /// Whether a decoded strip or tile is what was deflated; true for other codecs.
  bool fits_checksum(uint32_t piece, const std::vector<uint8_t>& decoded, uint64_t row_bytes) const;
  void choose_picture();
  void read_directory();

  std::unique_ptr<TiffMemory> memory_;
  std::string problem_;
  TiffDirectory directory_;
};

/// "LZW", or the number of a compression without a name.
std::string tiff_compression_name(uint64_t compression);

}  // namespace stoker::data
