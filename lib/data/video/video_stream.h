// SPDX-License-Identifier: Apache-2.0
// The packets and the decoder of the pictures of one video file. FFmpeg's libraries are included here, in
// video_pixels and in video_reader alone.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "data/storage/byte_reader.h"
#include "data/video/video_container.h"

struct AVCodecContext;
struct AVFormatContext;
struct AVFrame;
struct AVPacket;
struct AVStream;

namespace stoker::data {

/// The limits of a frame; those of images.
struct VideoLimits {
  double max_megapixels = 64;
  int max_side = 65535;
};

/// The way from a decoded frame to what is shown: pixel (x, y) goes to (x, y) or (y, x), counted from the other side of
/// the result where it is flipped.
struct VideoOrientation {
  bool swaps_axes = false, flips_x = false, flips_y = false;
};

struct AvDeleter {
  void operator()(AVCodecContext* decoder) const;
  void operator()(AVFrame* frame) const;
  void operator()(AVPacket* packet) const;
};

/// How often decoders of FFV1 on this thread have met damage so far. They fill in pixels of the frame before, and
/// neither return an error nor mark the frame.
int64_t complaints_of_ffv1();

/// An open file. One thread at a time.
class VideoStream {
 public:
  /// Sets `cause` where the file is bad: nothing else may then be called. Throws core::Error{no_input, io}.
  VideoStream(const std::string& path, const FileStamp& stamp, const VideoLimits& limits, std::string& cause);
  ~VideoStream();
  VideoStream& operator=(VideoStream&&) = delete;  // not copied, not moved

  /// The next packet of the pictures. False: there is none; `cause` is then set where the file is damaged.
  bool next(AVPacket& packet, std::string& cause);
  /// A packet whose place is known. False: `cause` is set.
  bool read_at(int64_t at, int32_t size, AVPacket& packet, std::string& cause) const;
  /// Goes to a packet at or before `time`. False where it cannot.
  bool seek(int64_t time);
  /// From now on contents of packets are zeros, which costs no reading: read_at() has them. Not of every file.
  bool leave_contents_out();
  /// Whether packets lie in the file as the decoder takes them. FFmpeg's seeks in such files may take hours if they are
  /// damaged.
  bool has_plain_packets() const { return outline_.container == VideoContainer::mp4; }
  /// A decoder for the pictures, on the caller's thread alone. Null, with `cause`, where there is none.
  std::unique_ptr<AVCodecContext, AvDeleter> make_decoder(std::string& cause) const;
  const AVStream& stream() const;
  const VideoLimits& limits() const { return limits_; }
  const VideoOrientation& orientation() const { return orientation_; }

 private:
  class Bytes;
  std::string open();
  std::string choose_stream();
  std::string read_display_matrix();

  const VideoLimits limits_;
  std::unique_ptr<Bytes> bytes_;
  VideoOutline outline_;
  AVFormatContext* format_ = nullptr;
  int stream_ = -1;
  VideoOrientation orientation_;
};

/// Why a frame of this size is too large; empty: it is not.
std::string size_problem(int64_t width, int64_t height, const VideoLimits& limits);
/// A number of FFmpeg in words.
std::string av_error_text(int error);

}  // namespace stoker::data
