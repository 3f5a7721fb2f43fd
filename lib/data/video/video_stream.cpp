// SPDX-License-Identifier: Apache-2.0
#include "data/video/video_stream.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/mem.h>
}

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>

#include "core/error.h"
#include "core/format.h"

namespace stoker::data {
namespace {

constexpr int kIoBuffer = 64 << 10;                // bytes
constexpr size_t kLargestPiece = size_t{1} << 29;  // bytes that FFmpeg may take at once
constexpr int kMostStreams = 64;

/// All others of FFmpeg are refused: decoders see bytes of strangers.
constexpr std::array kReadCodecs = {
    AV_CODEC_ID_H264,    AV_CODEC_ID_HEVC,    AV_CODEC_ID_MPEG4,    AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG1VIDEO,
    AV_CODEC_ID_VP8,     AV_CODEC_ID_VP9,     AV_CODEC_ID_AV1,      AV_CODEC_ID_MJPEG,      AV_CODEC_ID_FFV1,
    AV_CODEC_ID_HUFFYUV, AV_CODEC_ID_FFVHUFF, AV_CODEC_ID_RAWVIDEO, AV_CODEC_ID_PNG};

thread_local int64_t complaints = 0;

/// FFmpeg prints nothing. Its decoder of FFV1 reports a wrong checksum in no other way.
void count_complaints(void* sender, int level, const char*, va_list) {
  if (sender == nullptr || level > AV_LOG_ERROR || *static_cast<const AVClass**>(sender) != avcodec_get_class()) return;
  if (static_cast<const AVCodecContext*>(sender)->codec_id == AV_CODEC_ID_FFV1) ++complaints;
}

void prepare_ffmpeg() {
  static std::once_flag once;
  std::call_once(once, [] {
    av_log_set_callback(count_complaints);
    av_max_alloc(kLargestPiece);
  });
}

/// No file opens another one.
int open_nothing(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) { return AVERROR(EACCES); }

const char* demuxer_of(VideoContainer container) {
  return container == VideoContainer::mp4 ? "mov" : container == VideoContainer::avi ? "avi" : "matroska";
}

}  // namespace

void AvDeleter::operator()(AVCodecContext* decoder) const { avcodec_free_context(&decoder); }
void AvDeleter::operator()(AVFrame* frame) const { av_frame_free(&frame); }
void AvDeleter::operator()(AVPacket* packet) const { av_packet_free(&packet); }

int64_t complaints_of_ffv1() { return complaints; }

std::string av_error_text(int error) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  av_strerror(error, text.data(), text.size());
  return text.data();
}

std::string size_problem(int64_t width, int64_t height, const VideoLimits& limits) {
  if (width < 1 || height < 1) return core::format("its frames are {} x {} pixels", width, height);
  if (width > limits.max_side || height > limits.max_side) {
    return core::format("its frames are {} x {} pixels; {} is the longest side", width, height, limits.max_side);
  }
  const double megapixels = 1e-6 * static_cast<double>(width) * static_cast<double>(height);
  if (megapixels <= limits.max_megapixels) return "";
  return core::format("its frames are {} x {} pixels, more than --max-image-megapixels {}", width, height,
                      limits.max_megapixels);
}

/// A file as FFmpeg reads it. What goes wrong on the storage may not pass through C: it is kept.
class VideoStream::Bytes {
 public:
  explicit Bytes(const std::string& path) : file_(path) {
    auto* const buffer = static_cast<unsigned char*>(av_malloc(kIoBuffer));
    io_ = buffer == nullptr
              ? nullptr
              : avio_alloc_context(buffer, kIoBuffer, /*write_flag=*/0, this, &Bytes::read, nullptr, &Bytes::seek);
    if (io_ == nullptr) {
      av_free(buffer);
      throw std::bad_alloc();
    }
  }
  ~Bytes() {
    av_freep(&io_->buffer);
    avio_context_free(&io_);
  }
  Bytes& operator=(Bytes&&) = delete;  // not copied, not moved

  const FileBytes& file() const { return file_; }
  AVIOContext* io() { return io_; }
  void leave_contents_out() { leaves_out_ = true; }
  void rethrow() const {
    if (problem_ != nullptr) std::rethrow_exception(problem_);
  }

 private:
  static int read(void* self, uint8_t* bytes, int count) { return static_cast<Bytes*>(self)->read(bytes, count); }
  static int64_t seek(void* self, int64_t offset, int whence) {
    return static_cast<Bytes*>(self)->seek(offset, whence);
  }
  int read(uint8_t* bytes, int count) {
    const auto length = static_cast<int64_t>(file_.size());
    if (problem_ != nullptr || count <= 0) return AVERROR(EIO);
    if (at_ >= length) return AVERROR_EOF;
    const auto there = static_cast<int>(std::min<int64_t>(count, length - at_));
    if (leaves_out_) {
      std::memset(bytes, 0, static_cast<size_t>(there));
    } else {
      try {
        if (!file_.try_read(static_cast<uint64_t>(at_), bytes, static_cast<uint64_t>(there)).empty())
          return AVERROR(EIO);
      } catch (...) {
        problem_ = std::current_exception();
        return AVERROR(EIO);
      }
    }
    at_ += there;
    return there;
  }
  int64_t seek(int64_t offset, int whence) {
    const auto length = static_cast<int64_t>(file_.size());
    if ((whence & AVSEEK_SIZE) != 0) return length;
    const int from_where = whence & ~AVSEEK_FORCE;
    const int64_t from = from_where == SEEK_SET ? 0 : from_where == SEEK_CUR ? at_ : length;
    int64_t to = 0;
    if (__builtin_add_overflow(from, offset, &to) || to < 0) return AVERROR(EINVAL);
    return at_ = to;
  }

  const FileBytes file_;
  AVIOContext* io_ = nullptr;
  int64_t at_ = 0;
  bool leaves_out_ = false;
  std::exception_ptr problem_;
};

VideoStream::VideoStream(const std::string& path, const FileStamp& stamp, const VideoLimits& limits, std::string& cause)
    : limits_(limits), bytes_(std::make_unique<Bytes>(path)) {
  prepare_ffmpeg();
  const FileStamp now = bytes_->file().stamp();
  if (now.size != stamp.size) {
    cause = "it has changed since the scan";
  } else if (now.modified_ns != stamp.modified_ns) {
    cause = "its time has changed since the scan";
  } else if (stamp.size == 0) {
    cause = "the file is empty";
  }
  if (cause.empty()) cause = open();
}

VideoStream::~VideoStream() { avformat_close_input(&format_); }

std::string VideoStream::open() {
  outline_ = outline_of(bytes_->file());
  if (outline_.container == VideoContainer::unknown) return core::format("is no video that is read; {}", kVideosRead);
  if (!outline_.cut_short.empty()) return outline_.cut_short;
  format_ = avformat_alloc_context();
  if (format_ == nullptr) throw std::bad_alloc();
  format_->pb = bytes_->io();
  // The values of the container alone: nothing is guessed, and no parser runs.
  format_->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_NOFILLIN | AVFMT_FLAG_NOPARSE;
  format_->io_open = open_nothing;
  format_->max_streams = kMostStreams;
  AVDictionary* options = nullptr;
  av_dict_set(&options, "protocol_whitelist", "none", 0);
  const int error = avformat_open_input(&format_, "", av_find_input_format(demuxer_of(outline_.container)), &options);
  av_dict_free(&options);
  bytes_->rethrow();
  if (error < 0) return core::format("its header is damaged ({})", av_error_text(error));
  return choose_stream();
}

/// As ffmpeg chooses: the largest pictures, those marked as the usual ones before others; covers are none.
std::string VideoStream::choose_stream() {
  int64_t best = -1;
  bool has_sound = false;
  for (unsigned i = 0; i < format_->nb_streams; ++i) {
    AVStream& stream = *format_->streams[i];
    const AVCodecParameters& coded = *stream.codecpar;
    has_sound = has_sound || coded.codec_type == AVMEDIA_TYPE_AUDIO;
    stream.discard = AVDISCARD_ALL;
    if (coded.codec_type != AVMEDIA_TYPE_VIDEO || (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) continue;
    const int64_t score =
        int64_t{coded.width} * coded.height + ((stream.disposition & AV_DISPOSITION_DEFAULT) != 0 ? 5'000'000 : 0);
    if (score <= best) continue;
    best = score;
    stream_ = static_cast<int>(i);
  }
  if (stream_ < 0) return has_sound ? "it has sound and no pictures" : "it has no pictures";
  AVStream& stream = *format_->streams[stream_];
  stream.discard = AVDISCARD_DEFAULT;
  const AVCodecParameters& coded = *stream.codecpar;
  if (std::find(kReadCodecs.begin(), kReadCodecs.end(), coded.codec_id) == kReadCodecs.end()) {
    return core::format("its pictures are {}, which is not read; {}",
                        coded.codec_id == AV_CODEC_ID_NONE ? "of an unknown kind" : avcodec_get_name(coded.codec_id),
                        kVideosRead);
  }
  // MP4 leaves the size of MPEG-4 pictures to their decoder.
  const bool is_known = coded.width != 0 || coded.height != 0;
  if (std::string problem = size_problem(coded.width, coded.height, limits_); is_known && !problem.empty())
    return problem;
  return read_display_matrix();
}

std::string VideoStream::read_display_matrix() {
  const AVStream& stream = *format_->streams[stream_];
  const uint8_t* bytes = nullptr;
  size_t size = 0;
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
  const AVPacketSideData* const data = av_packet_side_data_get(
      stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  if (data != nullptr) {
    bytes = data->data;
    size = data->size;
  }
#else
  bytes = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
#endif
  std::array<int32_t, 9> matrix{};
  if (bytes == nullptr || size < sizeof matrix) return "";
  std::memcpy(matrix.data(), bytes, sizeof matrix);
  // x' = m[0] x + m[3] y, y' = m[1] x + m[4] y
  const auto size_of = [&](size_t i) { return std::fabs(static_cast<double>(matrix[i])); };
  const double straight = std::min(size_of(0), size_of(4)), swapped = std::min(size_of(1), size_of(3));
  if (straight == 0 && swapped == 0) return "";
  constexpr double kOneDegree = 0.0175;
  if (std::min(straight, swapped) > kOneDegree * std::max(straight, swapped)) {
    return "its pictures are to be shown turned by less than a quarter; turns by 90, 180 and 270 degrees are read";
  }
  orientation_.swaps_axes = swapped > straight;
  orientation_.flips_x = matrix[orientation_.swaps_axes ? 3 : 0] < 0;
  orientation_.flips_y = matrix[orientation_.swaps_axes ? 1 : 4] < 0;
  return "";
}

bool VideoStream::next(AVPacket& packet, std::string& cause) {
  for (;;) {
    av_packet_unref(&packet);
    const int error = av_read_frame(format_, &packet);
    bytes_->rethrow();
    if (error < 0) {
      if (error != AVERROR_EOF) cause = core::format("damaged: {}", av_error_text(error));
      return false;
    }
    if (packet.stream_index != stream_ || packet.size == 0) continue;
    if ((packet.flags & AV_PKT_FLAG_CORRUPT) == 0) return true;
    cause = "damaged: a part of it is cut short";
    return false;
  }
}

bool VideoStream::read_at(int64_t at, int32_t size, AVPacket& packet, std::string& cause) const {
  av_packet_unref(&packet);
  const FileBytes& file = bytes_->file();
  if (at < 0 || size <= 0 || static_cast<uint64_t>(at) > file.size() ||
      static_cast<uint64_t>(size) > file.size() - static_cast<uint64_t>(at)) {
    cause = "damaged: a part of it is cut short";
    return false;
  }
  if (av_new_packet(&packet, size) < 0) throw std::bad_alloc();
  packet.stream_index = stream_;
  cause = file.try_read(static_cast<uint64_t>(at), packet.data, static_cast<uint64_t>(size));
  return cause.empty();
}

bool VideoStream::seek(int64_t time) {
  const int error = av_seek_frame(format_, stream_, time, AVSEEK_FLAG_BACKWARD);
  bytes_->rethrow();
  return error >= 0;
}

bool VideoStream::leave_contents_out() {
  // All times of the frames stand in the header then; those of VP8 alone carry in themselves whether they are shown.
  if (outline_.container != VideoContainer::mp4 || outline_.is_fragmented) return false;
  if (stream().codecpar->codec_id == AV_CODEC_ID_VP8) return false;
  bytes_->leave_contents_out();
  return true;
}

std::unique_ptr<AVCodecContext, AvDeleter> VideoStream::make_decoder(std::string& cause) const {
  const AVCodec* const codec = avcodec_find_decoder(stream().codecpar->codec_id);
  if (codec == nullptr) {
    cause =
        core::format("FFmpeg's libraries have no decoder for {} here", avcodec_get_name(stream().codecpar->codec_id));
    return nullptr;
  }
  std::unique_ptr<AVCodecContext, AvDeleter> decoder(avcodec_alloc_context3(codec));
  if (decoder == nullptr || avcodec_parameters_to_context(decoder.get(), stream().codecpar) < 0) throw std::bad_alloc();
  decoder->thread_count = 1;
  decoder->pkt_timebase = stream().time_base;
  // Before it takes memory. Rows are padded in it; the limit itself is applied to decoded frames.
  decoder->max_pixels = static_cast<int64_t>(limits_.max_megapixels * 1e6) + int64_t{64} * limits_.max_side;
  decoder->err_recognition = AV_EF_CRCCHECK | AV_EF_EXPLODE;
  // Without it frames may come out of their order, or not at all, before the decoder has seen how far they are apart.
  if (codec->id == AV_CODEC_ID_H264) decoder->strict_std_compliance = FF_COMPLIANCE_STRICT;
  const int error = avcodec_open2(decoder.get(), codec, nullptr);
  if (error == AVERROR(ENOMEM)) throw std::bad_alloc();
  if (error >= 0) return decoder;
  cause = core::format("its pictures cannot be decoded ({})", av_error_text(error));
  return nullptr;
}

const AVStream& VideoStream::stream() const { return *format_->streams[stream_]; }

}  // namespace stoker::data
