// SPDX-License-Identifier: Apache-2.0
// The first frame of an animated WebP as a WebP file of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::data {

/// Where the frame lies on the canvas, in pixels.
struct WebpFrame {
  int left = 0, top = 0, width = 0, height = 0;
};

bool is_animated_webp(const uint8_t* bytes, uint64_t size);

/// Builds a still WebP from the first frame. Returns "" or the reason.
std::string first_webp_frame(const uint8_t* bytes, uint64_t size, WebpFrame& frame, std::vector<uint8_t>& still);

}  // namespace stoker::data
