// SPDX-License-Identifier: Apache-2.0
// Which container a video file is, and whether it is whole, by the lengths that its outermost parts state.
#pragma once

#include <cstdint>
#include <string>

#include "data/storage/byte_reader.h"

namespace stoker::data {

enum class VideoContainer { unknown, mp4, matroska, avi };

inline constexpr char kVideosRead[] =
    "videos are MP4, AVI, Matroska or WebM files with H.264, HEVC, MPEG-4, MPEG-2, VP8, VP9, AV1, MJPEG, FFV1, HuffYUV "
    "or "
    "uncompressed pictures";

struct VideoOutline {
  VideoContainer container = VideoContainer::unknown;
  bool is_fragmented = false;  ///< mp4: the times of the frames lie between them
  std::string cut_short;       ///< why it is not whole; empty: nothing shows that
};

/// Reads a few bytes of each outermost part. Throws core::Error{io} where the storage fails.
VideoOutline outline_of(const ByteReader& file);

}  // namespace stoker::data
