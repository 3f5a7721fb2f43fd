// SPDX-License-Identifier: Apache-2.0
// Rows of a decoder collected into one image.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/image/pixels/image_buffer.h"

namespace stoker::data {

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
  /// What the image holds; before begin() what was wanted.
  const Region& held() const { return held_; }

 private:
  ImageBuffer& image_;
  Region held_;
  size_t row_bytes_ = 0;
  uint8_t* next_ = nullptr;
};

}  // namespace stoker::data
