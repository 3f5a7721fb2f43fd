// SPDX-License-Identifier: Apache-2.0
// Pixels in memory, and the input and output of a decoder.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/storage/scratch.h"

namespace stoker::data {

/// uint8 pixels, HWC, rows packed. May be used again for the next sample.
struct ImageBuffer {
  int height = 0, width = 0, channels = 0;
  ScratchBytes pixels;  ///< at least height * width * channels
};

/// Which numbers of pictures with more than 8 bits become black and white; the whole range of their kind where not set.
struct ValueRange {
  double low = 0, high = 0;
  bool is_set() const { return high > low; }
};

/// Numbers of pictures with more than 8 bits, as they are stored: each `every`-th of them.
struct SeenValues {
  std::vector<double> values;
  double low = 0, high = 0;  ///< the whole range of their kind
  uint64_t every = 1, count = 0;
  void add(double value) {
    if (count++ % every == 0) values.push_back(value);
  }
};

/// The limits of a decode, and how pixels are made.
struct DecodeLimits {
  double max_megapixels = 64;
  int max_side = 65535;
  int max_jpeg_scans = 100;
  double max_seconds = 30;     ///< time limit of one JPEG; generous, since a slow machine must not make an image bad
  bool repair = false;         ///< damaged JPEGs and sounds give what can be read of them; see take_repair()
  ValueRange range;            ///< black and white of images of 16 bits and more
  SeenValues* seen = nullptr;  ///< takes the numbers that `range` is for; null: they are not needed
};

/// The repairs by decodes of this thread since the last call, as a reason; empty: nothing.
std::string take_repair();
void note_repair(const std::string& reason);

/// A rectangle of an image, in pixels.
struct Region {
  int left = 0, top = 0, width = 0, height = 0;
};

/// Takes the rows of an image from a decoder, top to bottom, as they are decoded.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// The input: rows of held.width x `channels` bytes. Called again if a decode restarts.
  virtual void begin(const Region& held, int channels) = 0;
  /// Where the next row goes; those before it are complete.
  virtual uint8_t* next_row() = 0;
  /// The last row is complete too.
  virtual void end() = 0;
};

// Rows of a decoder collected into one image.

/// Puts rows into `image`, one below the other.
class RowsOfImage : public RowSink {
 public:
  RowsOfImage(ImageBuffer& image, const Region& wanted) : image_(image), held_(wanted) {}

  void begin(const Region& held, int channels) override {
    held_ = held;
    image_.width = held.width;
    image_.height = held.height;
    image_.channels = channels;
    row_bytes_ = static_cast<size_t>(held.width) * static_cast<size_t>(channels);
    const size_t needed = row_bytes_ * static_cast<size_t>(held.height);
    if (image_.pixels.size() < needed) image_.pixels.resize(needed);
    next_ = image_.pixels.data();
  }
  uint8_t* next_row() override {
    uint8_t* const row = next_;
    next_ += row_bytes_;
    return row;
  }
  void end() override {}
  /// The channels of the image; before begin() the requested ones.
  const Region& held() const { return held_; }

 private:
  ImageBuffer& image_;
  Region held_;
  size_t row_bytes_ = 0;
  uint8_t* next_ = nullptr;
};

// Changes of the meaning or order of 8-bit pixels.

/// ITU-R BT.601 luma, rounded, in 16-bit fixed point.
inline uint8_t luma(uint32_t red, uint32_t green, uint32_t blue) {
  return static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

/// One row of samples of 8 bits: gray (1), gray and alpha (2), RGB (3), RGB and alpha (4), to `channels` (1 or 3).
/// Alpha goes over black, or is left out.
void convert_row(const uint8_t* in, int64_t width, int samples, bool use_alpha, int channels, uint8_t* out);
/// The same of samples as OpenCV orders them: BGR.
void convert_bgr_row(const uint8_t* in, int64_t width, int samples, bool use_alpha, int channels, uint8_t* out);
/// Inks to RGB: 255 is full ink.
inline void inks_to_rgb(const uint8_t* inks, uint8_t* rgb) {
  const uint32_t light = 255u - inks[3];
  for (int i = 0; i < 3; ++i) rgb[i] = static_cast<uint8_t>(((255u - inks[i]) * light + 127) / 255);
}

/// Numbers of a wide kind to 8 bits: `low` and less is black, `high` and more white, rounded to even between.
class EightBits {
 public:
  EightBits(const ValueRange& given, double low, double high, SeenValues* seen = nullptr)
      : low_(given.is_set() ? given.low : low),
        span_(given.is_set() ? given.high - given.low : high - low),
        seen_(seen) {
    if (seen != nullptr) seen->low = low, seen->high = high;
  }
  uint8_t of(double value) const {
    if (seen_ != nullptr) seen_->add(value);
    const double scaled = (value - low_) / span_ * 255;
    return scaled >= 255 ? 255 : scaled > 0 ? static_cast<uint8_t>(std::nearbyint(scaled)) : 0;
  }
  /// For 16-bit numbers in this machine's order of bytes.
  void row_of_16(const uint8_t* in, int64_t count, uint8_t* out) const;

 private:
  double low_, span_;
  SeenValues* seen_;
};

/// Packed pixels of `from` channels (1 or 3) into `out` with `to` channels (1 or 3): gray repeats, RGB
/// becomes luma.
void convert_channels(const uint8_t* pixels, int64_t count, int from, int to, std::vector<uint8_t>& out);

}  // namespace stoker::data
