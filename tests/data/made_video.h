// SPDX-License-Identifier: Apache-2.0
// Video files with known frames, by encoders that every libavcodec has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::data {

struct VideoRecipe {
  const char* codec = "ffv1";  ///< lossless codec of RGB; "mpeg4" and "mjpeg" are lossy
  int width = 0, height = 0;
  int group = 12;               ///< frames from one that stands alone to the next
  int reordered = 0;            ///< frames between others that are stored after both
  std::vector<int64_t> times;   ///< times of the frames, in 1/100 s; empty: four apart
  std::vector<int32_t> matrix;  ///< 9 numbers of the display matrix; empty: none
  bool has_sound = false, has_pictures = true;
};

/// Writes a file whose container follows from the end of `path`. `frames`: RGB, packed.
void write_video_file(const std::string& path, const std::vector<std::vector<uint8_t>>& frames,
                      const VideoRecipe& recipe);

/// Frames that differ from each other and from place to place.
std::vector<std::vector<uint8_t>> made_frames(int count, int width, int height, int seed = 0);

}  // namespace stoker::data
