// SPDX-License-Identifier: Apache-2.0
// Pixels in memory, and the input and output of a decoder.
#pragma once

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

/// What a decode may take, and how pixels are made.
struct DecodeLimits {
  double max_megapixels = 64;
  int max_side = 65535;
  int max_jpeg_scans = 100;
  double max_seconds = 30;     ///< of one JPEG; generous, since a slow machine must not make an image bad
  bool repair = false;         ///< damaged JPEGs give what their decoder makes of them; see take_repair()
  ValueRange range;            ///< of 16 bits and more
  SeenValues* seen = nullptr;  ///< takes the numbers that `range` is for; null: they are not needed
};

/// What the decodes of this thread have repaired since the last call, as a reason; empty: nothing.
std::string take_repair();

/// A rectangle of an image, in pixels.
struct Region {
  int left = 0, top = 0, width = 0, height = 0;
};

/// Takes the rows of an image from a decoder, top to bottom, as they are decoded.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// What comes: rows of held.width x `channels` bytes. Once more when a decode has to start over.
  virtual void begin(const Region& held, int channels) = 0;
  /// Where the next row goes; those before it are complete.
  virtual uint8_t* next_row() = 0;
  /// The last row is complete too.
  virtual void end() = 0;
};

}  // namespace stoker::data
