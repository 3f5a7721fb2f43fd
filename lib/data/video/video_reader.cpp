// SPDX-License-Identifier: Apache-2.0
#include "data/video/video_reader.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <algorithm>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {
namespace {

constexpr int64_t kMostFrames = int64_t{1} << 22;  // 38 hours at 30 frames a second
constexpr int64_t kNoTime = AV_NOPTS_VALUE;

using PacketPtr = std::unique_ptr<AVPacket, AvDeleter>;
using FramePtr = std::unique_ptr<AVFrame, AvDeleter>;

PacketPtr new_packet() {
  PacketPtr packet(av_packet_alloc());
  if (packet == nullptr) throw std::bad_alloc();
  return packet;
}

/// Whether a packet gives a frame that is shown.
bool is_shown(const AVPacket& packet, AVCodecID codec) {
  if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return false;  // before the cut of an edit list
  constexpr uint8_t kVp8Shown = 0x10;
  return codec != AV_CODEC_ID_VP8 || (packet.data[0] & kVp8Shown) != 0;
}

/// Finds pictures that are shown before one that is stored before them.
class ReorderSeeker {
 public:
  explicit ReorderSeeker(const AVStream& stream)
      : parser_(av_parser_init(stream.codecpar->codec_id), av_parser_close), context_(avcodec_alloc_context3(nullptr)) {
    if (context_ == nullptr || avcodec_parameters_to_context(context_.get(), stream.codecpar) < 0)
      throw std::bad_alloc();
    if (parser_ != nullptr) parser_->flags |= PARSER_FLAG_COMPLETE_FRAMES;
  }
  /// True also where that cannot be found out.
  bool is_reordered(const AVPacket& packet) {
    if (parser_ == nullptr) return true;
    uint8_t* out = nullptr;
    int size = 0;
    av_parser_parse2(parser_.get(), context_.get(), &out, &size, packet.data, packet.size, kNoTime, packet.dts, -1);
    return parser_->pict_type == AV_PICTURE_TYPE_B;
  }

 private:
  std::unique_ptr<AVCodecParserContext, void (*)(AVCodecParserContext*)> parser_;
  std::unique_ptr<AVCodecContext, AvDeleter> context_;
};

struct SeenPacket {
  int64_t shown = kNoTime, stored = kNoTime;  ///< times
  int64_t number = 0;                         ///< among all, those that are not shown included
  bool is_key = false;
};

/// The packets of a video, and whether some are shown in another order than that of storage without a time for it.
struct SeenPackets {
  std::vector<SeenPacket> all;
  std::vector<VideoPacket>
      places;  ///< places of all packets, those that are not shown included; empty: they do not lie there as they are
  bool lacks_times = false, lacks_order = false;
};

std::string look_through(VideoStream& video, SeenPackets& seen) {
  const PacketPtr packet = new_packet();
  const AVCodecID codec = video.stream().codecpar->codec_id;
  const AVCodecDescriptor* const about = avcodec_descriptor_get(codec);
  const bool may_reorder = about == nullptr || (about->props & AV_CODEC_PROP_REORDER) != 0;
  video.leave_contents_out();
  bool has_places = video.has_plain_packets();
  std::unique_ptr<ReorderSeeker> seeker;
  std::string cause;
  int64_t packets = 0;
  for (; video.next(*packet, cause); ++packets) {
    if (packets == kMostFrames) return core::format("it has more than {} frames", core::count_text(kMostFrames));
    has_places = has_places && packet->pos >= 0 && packet->side_data_elems == 0;
    if (has_places) seen.places.push_back({packet->pos, packet->pts, packet->size, packet->flags});
    if (!is_shown(*packet, codec)) continue;
    seen.all.push_back({packet->pts, packet->dts, packets, (packet->flags & AV_PKT_FLAG_KEY) != 0});
    if (packet->pts != kNoTime) continue;
    seen.lacks_times = true;
    if (!may_reorder || seen.lacks_order) continue;
    if (seeker == nullptr) seeker = std::make_unique<ReorderSeeker>(video.stream());
    seen.lacks_order = seeker->is_reordered(*packet);
  }
  if (!has_places) seen.places.clear();
  return cause;
}

/// Times of all frames, where each has one of its own.
void take_times(SeenPackets& seen, VideoIndex& index) {
  index.by_storage = seen.lacks_times;
  const auto time_of = [&](const SeenPacket& packet) { return index.by_storage ? packet.stored : packet.shown; };
  for (const SeenPacket& packet : seen.all) index.times.push_back(time_of(packet));
  std::sort(index.times.begin(), index.times.end());
  const bool are_unique = std::adjacent_find(index.times.begin(), index.times.end()) == index.times.end();
  if (seen.lacks_order || !are_unique || index.times.front() == kNoTime) {
    index.times.clear();
    return;
  }
  for (const SeenPacket& packet : seen.all) {
    if (!packet.is_key) continue;
    const int64_t time = time_of(packet);
    const auto frame = std::lower_bound(index.times.begin(), index.times.end(), time) - index.times.begin();
    if (frame <= index.keys.back().frame) continue;
    index.keys.push_back({frame, packet.stored == kNoTime ? time : packet.stored, packet.number});
  }
  if (!index.by_storage) index.packets = std::move(seen.places);
  index.packets.shrink_to_fit();
  index.times.shrink_to_fit();
  index.keys.shrink_to_fit();
}

}  // namespace

/// A file that is being decoded.
class VideoReader::Decoding {
 public:
  Decoding(std::string path, const FileStamp& stamp, const VideoLimits& limits, std::shared_ptr<const VideoIndex> index)
      : path_(std::move(path)),
        stamp_(stamp),
        limits_(limits),
        index_(std::move(index)),
        packet_(new_packet()),
        frame_(av_frame_alloc()) {
    if (frame_ == nullptr) throw std::bad_alloc();
  }

  const AVFrame& frame() const { return *frame_; }
  const VideoOrientation& orientation() const { return video_->orientation(); }

  /// Decodes up to a frame. Returns "" or why that cannot be done.
  std::string find(int64_t wanted) {
    const std::vector<VideoKey>& keys = index_->keys;
    const auto behind = std::upper_bound(keys.begin(), keys.end(), wanted,
                                         [](int64_t frame, const VideoKey& key) { return frame < key.frame; });
    auto key = static_cast<size_t>(behind - keys.begin()) - 1;
    std::string cause;
    const bool continues = video_ != nullptr && next_ <= wanted && keys[key].frame <= next_;
    if (!continues && !begin_at(key, wanted, cause)) return cause;
    // A frame that cannot be decoded from there may need more of what lies before it.
    for (int attempt = 0;; ++attempt) {
      cause.clear();
      if (advance_to(wanted, cause)) return "";
      const bool is_missing = cause.empty();
      if (is_missing) {
        cause = core::format("damaged: frame {} of {} cannot be decoded", wanted + 1, core::count_text(index_->frames));
      }
      if (began_at_ == 0 || attempt == 2 || (attempt == 1 && !is_missing)) return cause;
      key = attempt == 0 ? began_at_ - 1 : 0;
      if (std::string other; !begin_at(key, wanted, other)) return other;
    }
  }

  /// The number of frames, by decoding all of them.
  std::string count(int64_t& frames) {
    std::string cause;
    if (!restart(cause)) return cause;
    advance_to(kMostFrames, cause);
    frames = counted_;
    return cause;
  }

 private:
  /// From the beginning of the file.
  bool restart(std::string& cause) {
    began_at_ = 0;
    next_ = counted_ = next_packet_ = 0;
    if (video_ != nullptr && has_places()) {
      avcodec_flush_buffers(decoder_.get());
      return true;
    }
    decoder_.reset();
    video_ = std::make_unique<VideoStream>(path_, stamp_, limits_, cause);
    if (cause.empty()) decoder_ = video_->make_decoder(cause);
    if (!cause.empty()) video_.reset();
    has_packet_ = false;
    return cause.empty();
  }

  bool begin_at(size_t key, int64_t wanted, std::string& cause) {
    if (has_places()) {
      if (!restart(cause)) return false;
      began_at_ = key;
      next_ = index_->keys[key].frame;
      next_packet_ = index_->keys[key].packet;
      return true;
    }
    for (int attempt = 0; key > 0 && attempt < 2; ++attempt, --key) {
      if (video_ == nullptr && !restart(cause)) return false;
      avcodec_flush_buffers(decoder_.get());
      if (!video_->seek(index_->keys[key].time) || !read_packet(cause)) continue;
      has_packet_ = true;
      const int64_t frame = number_of(packet_->pts);
      if ((packet_->flags & AV_PKT_FLAG_KEY) == 0 || frame < 0 || frame > wanted) continue;
      while (index_->keys[key].frame > frame) --key;  // earlier than wanted: from there it works as well
      began_at_ = key;
      next_ = index_->keys[key].frame;
      return true;
    }
    cause.clear();
    return restart(cause);
  }

  /// The frame with a time; negative: there is none.
  int64_t number_of(int64_t time) const {
    const auto found = std::lower_bound(index_->times.begin(), index_->times.end(), time);
    return found != index_->times.end() && *found == time ? found - index_->times.begin() : -1;
  }

  bool has_places() const { return !index_->packets.empty(); }

  bool read_packet(std::string& cause) {
    if (has_places()) {
      if (next_packet_ == static_cast<int64_t>(index_->packets.size())) return false;
      const VideoPacket& place = index_->packets[static_cast<size_t>(next_packet_++)];
      if (!video_->read_at(place.at, place.size, *packet_, cause)) return false;
      packet_->pts = place.time;
      packet_->flags = place.flags;
      return true;
    }
    if (!video_->next(*packet_, cause)) return false;
    if (index_->by_storage) packet_->pts = packet_->dts;
    return true;
  }

  /// Gives the decoder what comes next. False: `cause` is set.
  bool feed(int64_t wanted, std::string& cause) {
    for (;;) {
      if (!has_packet_ && !read_packet(cause)) {
        if (!cause.empty()) return false;
        return is_taken(avcodec_send_packet(decoder_.get(), nullptr), cause);
      }
      has_packet_ = false;
      if (index_->times.empty()) break;
      const int64_t frame = number_of(packet_->pts);
      // Shown before the frame that decoding began at: they may need others before that.
      if (frame >= 0 && began_at_ > 0 && frame < index_->keys[began_at_].frame) continue;
      const bool is_passed = frame >= 0 && frame < wanted;
      decoder_->skip_frame = is_passed ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
      break;
    }
    return is_taken(avcodec_send_packet(decoder_.get(), packet_.get()), cause);
  }

  bool is_taken(int error, std::string& cause) const {
    if (error == AVERROR(ENOMEM)) throw std::bad_alloc();
    if (error >= 0) return true;
    cause = damage(next_, av_error_text(error));
    return false;
  }

  std::string damage(int64_t frame, const std::string& detail) const {
    return core::format("damaged near frame {}: {}", frame + 1, detail);
  }

  /// True: the frame is in frame_. False: there is none, or the file is damaged.
  bool advance_to(int64_t wanted, std::string& cause) {
    const int64_t complaints = complaints_of_ffv1();
    for (;;) {
      const int error = avcodec_receive_frame(decoder_.get(), frame_.get());
      if (error == AVERROR(EAGAIN)) {
        if (!feed(wanted, cause)) return false;
        continue;
      }
      if (error == AVERROR_EOF) {
        next_ = std::numeric_limits<int64_t>::max();
        return false;
      }
      if (!is_taken(error, cause)) return false;
      const int64_t number = index_->times.empty() ? counted_++ : number_of(frame_->pts);
      if (number < next_) continue;
      if (frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 ||
          complaints_of_ffv1() != complaints) {
        cause = damage(number, "its decoder had to guess pixels");
        return false;
      }
      next_ = number + 1;
      if (number >= wanted) return number == wanted;
    }
  }

  const std::string path_;
  const FileStamp stamp_;
  const VideoLimits limits_;
  const std::shared_ptr<const VideoIndex> index_;
  std::unique_ptr<VideoStream> video_;  ///< null: not open
  std::unique_ptr<AVCodecContext, AvDeleter> decoder_;
  PacketPtr packet_;
  FramePtr frame_;
  bool has_packet_ = false;  ///< packet_ was read and not given to the decoder
  size_t began_at_ = 0;      ///< key
  int64_t next_ = 0;         ///< frames before it have been passed
  int64_t counted_ = 0;
  int64_t next_packet_ = 0;  ///< where their places are known
};

namespace {

VideoIndex index_of_file(const std::string& path, const FileStamp& stamp, const VideoLimits& limits,
                         const std::function<std::string(const VideoIndex&, int64_t&)>& count_frames) {
  VideoIndex index;
  try {
    VideoStream video(path, stamp, limits, index.cause);
    SeenPackets seen;
    if (index.cause.empty()) index.cause = look_through(video, seen);
    if (index.cause.empty() && seen.all.empty()) index.cause = "it has no frames";
    if (!index.cause.empty()) return index;
    index.keys = {VideoKey{}};
    take_times(seen, index);
    index.frames = static_cast<int64_t>(seen.all.size());
  } catch (const core::Error& error) {
    if (error.kind() != core::ErrorKind::no_input) throw;
    index.cause = error.what();
    return index;
  }
  if (index.times.empty()) index.cause = count_frames(index, index.frames);
  if (index.cause.empty() && index.frames == 0) index.cause = "it has no frames";
  return index;
}

}  // namespace

VideoReader::VideoReader() = default;
VideoReader::~VideoReader() = default;

VideoIndex VideoReader::index_of(const VideoPlace& place, const VideoLimits& limits) {
  const auto index_at = [&](const std::string& path) {
    return index_of_file(path, place.stamp, limits, [&](const VideoIndex& index, int64_t& frames) {
      Decoding decoding(path, place.stamp, limits, std::make_shared<const VideoIndex>(index));
      return decoding.count(frames);
    });
  };
  if (!place.copy.empty()) {
    if (VideoIndex index = index_at(place.copy); index.cause.empty()) return index;
  }
  return index_at(place.path);
}

void VideoReader::take(VideoPlace place, const VideoLimits& limits, std::shared_ptr<const VideoIndex> index) {
  open_.reset();
  place_ = std::move(place);
  limits_ = limits;
  index_ = std::move(index);
}

std::string VideoReader::read(int64_t frame, std::vector<uint8_t>& rgb, int& height, int& width) {
  if (!index_->cause.empty()) return index_->cause;
  if (open_ == nullptr && !place_.copy.empty()) {
    if (read_from(place_.copy, frame, rgb, height, width).empty()) return "";
  }
  return read_from(place_.path, frame, rgb, height, width);
}

std::string VideoReader::read_from(const std::string& path, int64_t frame, std::vector<uint8_t>& rgb, int& height,
                                   int& width) {
  try {
    if (open_ == nullptr) open_ = std::make_unique<Decoding>(path, place_.stamp, limits_, index_);
    std::string cause = open_->find(frame);
    const AVFrame& found = open_->frame();
    if (cause.empty()) cause = size_problem(found.width, found.height, limits_);
    if (cause.empty()) cause = converter_.convert(found, open_->orientation(), rgb, height, width);
    if (!cause.empty()) open_.reset();
    return cause;
  } catch (const core::Error& error) {
    open_.reset();
    if (error.kind() != core::ErrorKind::no_input) throw;
    return error.what();
  } catch (...) {
    open_.reset();
    throw;
  }
}

}  // namespace stoker::data
