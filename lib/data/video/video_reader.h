// SPDX-License-Identifier: Apache-2.0
// Single frames of a video file by their number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/storage/byte_reader.h"
#include "data/video/video_pixels.h"
#include "data/video/video_stream.h"

namespace stoker::data {

/// Where a video lies.
struct VideoPlace {
  std::string path, copy;  ///< the copy is read where it can be; empty: there is none
  FileStamp stamp;
};

/// A frame that can be decoded without those before it.
struct VideoKey {
  int64_t frame = 0;   ///< from which on frames are whole
  int64_t time = 0;    ///< for a seek
  int64_t packet = 0;  ///< in VideoIndex::packets
};

/// The bytes of a packet in the file.
struct VideoPacket {
  int64_t at = 0, time = 0;  ///< the time is that of its frame
  int32_t size = 0, flags = 0;
};

/// The frames of a video in the order in which they are shown: frame k is the k-th, at whatever time.
struct VideoIndex {
  std::string cause;           ///< why the video is bad; empty: it is not
  std::vector<int64_t> times;  ///< time of each frame, rising; empty: they have none and are counted from the beginning
  bool by_storage = false;     ///< times are those of storage, which is the order of showing, too
  std::vector<VideoKey> keys;  ///< rising; the first is at frame 0
  /// In the order of storage, where the file has them as the decoder takes them; empty: FFmpeg finds them.
  std::vector<VideoPacket> packets;
  int64_t frames = 0;  ///< at least 1 where there is no cause

  int64_t memory_bytes() const {
    return static_cast<int64_t>(times.capacity() * sizeof(int64_t) + keys.capacity() * sizeof(VideoKey) +
                                packets.capacity() * sizeof(VideoPacket));
  }
};

/// Keeps the last file open: the next frame of a clip is not decoded from the beginning again. What it gives does not
/// depend on that. One thread.
class VideoReader {
 public:
  VideoReader();
  ~VideoReader();
  VideoReader& operator=(VideoReader&&) = delete;  // not copied, not moved

  /// Reads every packet once and decodes none, but where the frames have no times. Throws core::Error{io} where the
  /// storage fails.
  static VideoIndex index_of(const VideoPlace& place, const VideoLimits& limits);
  /// Opens the file whose index this is.
  void take(VideoPlace place, const VideoLimits& limits, std::shared_ptr<const VideoIndex> index);
  /// Frame `frame` as RGB, in the front of `rgb`, which only grows. Returns "" or why it is bad. Throws as above.
  std::string read(int64_t frame, std::vector<uint8_t>& rgb, int& height, int& width);

 private:
  class Decoding;
  std::string read_from(const std::string& path, int64_t frame, std::vector<uint8_t>& rgb, int& height, int& width);

  VideoPlace place_;
  VideoLimits limits_;
  std::shared_ptr<const VideoIndex> index_;
  std::unique_ptr<Decoding> open_;  ///< null: nothing is
  FrameConverter converter_;
};

}  // namespace stoker::data
