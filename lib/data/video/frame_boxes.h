// SPDX-License-Identifier: Apache-2.0
// The part of each frame of a video that is seen, such as a face: `--boxes`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace stoker::data {

/// Pixels of the frame as it is shown; [left, right) x [top, bottom), at least one pixel.
struct FrameBox {
  int64_t frame = 0;  ///< counted from 0
  int32_t left = 0, top = 0, right = 0, bottom = 0;
};

/// Immutable; read by any number of threads.
class FrameBoxes {
 public:
  /// Reads a CSV file with the columns path, frame, x, y, width and height, in any order. Paths are relative to the
  /// folder of the file. Throws core::Error{no_input, permission, io, data} with the line.
  explicit FrameBoxes(const std::string& path);

  /// The boxes of a video, by frame. Null where the file has none.
  const std::vector<FrameBox>* of(const std::string& video) const;
  const std::string& path() const { return path_; }
  /// Covers all rows, wherever the file lies.
  const std::string& digest() const { return digest_; }
  int64_t memory_bytes() const { return bytes_; }

 private:
  const std::string path_;
  std::unordered_map<std::string, std::vector<FrameBox>> boxes_;  ///< by the absolute path
  std::string digest_;
  int64_t bytes_ = 0;
};

/// The box of the frame, or of the nearest one that has a box, the earlier of two. `boxes` is not empty.
const FrameBox& nearest_box(const std::vector<FrameBox>& boxes, int64_t frame);

/// Moves the part of an image of `height` x `width` x 3 bytes that lies in the box to its front, and changes both
/// sides to those of the part. Returns why it cannot: no pixel lies in the box; "" where it can.
std::string crop_to_box(const FrameBox& box, std::vector<uint8_t>& rgb, int& height, int& width);

}  // namespace stoker::data
