// SPDX-License-Identifier: Apache-2.0
// Decoded frames as RGB pixels, as `ffmpeg -pix_fmt rgb24` makes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/video/video_stream.h"

struct SwsContext;

namespace stoker::data {

/// Converts frame after frame.
class FrameConverter {
 public:
  FrameConverter();
  ~FrameConverter();
  FrameConverter& operator=(FrameConverter&&) = delete;  // not copied, not moved

  /// Writes height x width x 3 bytes to the front of `rgb`, which only grows. Returns "" or why it cannot be done.
  std::string convert(const AVFrame& frame, const VideoOrientation& orientation, std::vector<uint8_t>& rgb, int& height,
                      int& width);

 private:
  SwsContext* scaler_ = nullptr;
  std::vector<uint8_t> rows_;  ///< with spaces behind them, which the scaler may write to
};

}  // namespace stoker::data
