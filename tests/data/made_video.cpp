// SPDX-License-Identifier: Apache-2.0
#include "made_video.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

#include <cstring>
#include <memory>
#include <stdexcept>

namespace stoker::data {
namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string("made_video: ") + what);
  return result;
}

struct Freed {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
  void operator()(AVFormatContext* file) const {
    if (file->pb != nullptr) avio_closep(&file->pb);
    avformat_free_context(file);
  }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

class VideoWriter {
 public:
  VideoWriter(const std::string& path, const VideoRecipe& recipe) : recipe_(recipe) {
    AVFormatContext* file = nullptr;
    checked(avformat_alloc_output_context2(&file, nullptr, nullptr, path.c_str()), "no such container");
    file_.reset(file);
    if (recipe.has_pictures) add_pictures();
    if (recipe.has_sound) add_sound();
    checked(avio_open(&file_->pb, path.c_str(), AVIO_FLAG_WRITE), "cannot write");
    checked(avformat_write_header(file_.get(), nullptr), "header");
  }

  void add(const std::vector<uint8_t>& rgb, int64_t time) {
    Owned<AVFrame> frame(av_frame_alloc());
    frame->format = pictures_->pix_fmt;
    frame->width = recipe_.width;
    frame->height = recipe_.height;
    checked(av_frame_get_buffer(frame.get(), 0), "frame");
    const uint8_t* const planes[4] = {rgb.data(), nullptr, nullptr, nullptr};
    const int strides[4] = {3 * recipe_.width, 0, 0, 0};
    Owned<SwsContext> scaler(sws_getContext(recipe_.width, recipe_.height, AV_PIX_FMT_RGB24, recipe_.width,
                                            recipe_.height, pictures_->pix_fmt, SWS_BICUBIC | SWS_ACCURATE_RND, nullptr,
                                            nullptr, nullptr));
    sws_scale(scaler.get(), planes, strides, 0, recipe_.height, frame->data, frame->linesize);
    frame->pts = time;
    checked(avcodec_send_frame(pictures_.get(), frame.get()), "send frame");
    write(*pictures_, 0);
  }

  void finish() {
    if (pictures_ != nullptr) {
      checked(avcodec_send_frame(pictures_.get(), nullptr), "end");
      write(*pictures_, 0);
    }
    if (recipe_.has_sound) write_sound();
    checked(av_write_trailer(file_.get()), "trailer");
  }

 private:
  void add_pictures() {
    const AVCodec* const codec = avcodec_find_encoder_by_name(recipe_.codec);
    if (codec == nullptr) throw std::runtime_error(std::string("made_video: no encoder ") + recipe_.codec);
    pictures_.reset(avcodec_alloc_context3(codec));
    const std::string name = recipe_.codec;
    pictures_->pix_fmt = name == "ffv1"    ? AV_PIX_FMT_0RGB32
                         : name == "mjpeg" ? AV_PIX_FMT_YUVJ420P
                                           : AV_PIX_FMT_YUV420P;
    pictures_->width = recipe_.width;
    pictures_->height = recipe_.height;
    pictures_->time_base = {1, recipe_.times.empty() ? 25 : 100};
    pictures_->framerate = {25, 1};
    pictures_->gop_size = recipe_.group;
    pictures_->max_b_frames = recipe_.reordered;
    pictures_->thread_count = 1;
    if (name == "ffv1") av_opt_set_int(pictures_->priv_data, "slicecrc", 1, 0), pictures_->level = 3;
    if (name != "ffv1") pictures_->flags |= AV_CODEC_FLAG_QSCALE, pictures_->global_quality = 3 * FF_QP2LAMBDA;
    if ((file_->oformat->flags & AVFMT_GLOBALHEADER) != 0) pictures_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    checked(avcodec_open2(pictures_.get(), codec, nullptr), "encoder");
    AVStream* const stream = avformat_new_stream(file_.get(), nullptr);
    stream->time_base = pictures_->time_base;
    stream->avg_frame_rate = {25, 1};
    checked(avcodec_parameters_from_context(stream->codecpar, pictures_.get()), "parameters");
    if (recipe_.matrix.empty()) return;
    constexpr size_t kBytes = 9 * sizeof(int32_t);
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
    AVPacketSideData* const data =
        av_packet_side_data_new(&stream->codecpar->coded_side_data, &stream->codecpar->nb_coded_side_data,
                                AV_PKT_DATA_DISPLAYMATRIX, kBytes, 0);
    std::memcpy(data->data, recipe_.matrix.data(), kBytes);
#else
    std::memcpy(av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, kBytes), recipe_.matrix.data(), kBytes);
#endif
  }

  void add_sound() {
    sound_stream_ = avformat_new_stream(file_.get(), nullptr);
    AVCodecParameters& sound = *sound_stream_->codecpar;
    sound.codec_type = AVMEDIA_TYPE_AUDIO;
    sound.codec_id = AV_CODEC_ID_PCM_S16LE;
    sound.sample_rate = 8000;
    sound.bits_per_coded_sample = 16;
    sound.block_align = 2;
    sound.bit_rate = 128'000;
#if LIBAVCODEC_VERSION_MAJOR >= 59
    sound.ch_layout = AV_CHANNEL_LAYOUT_MONO;
#endif
    sound_stream_->time_base = {1, 8000};
  }

  void write_sound() {
    Owned<AVPacket> packet(av_packet_alloc());
    checked(av_new_packet(packet.get(), 1600), "packet");
    std::memset(packet->data, 1, 1600);
    packet->stream_index = sound_stream_->index;
    packet->pts = packet->dts = 0;
    packet->duration = 800;
    packet->flags |= AV_PKT_FLAG_KEY;
    av_packet_rescale_ts(packet.get(), {1, 8000}, sound_stream_->time_base);
    checked(av_interleaved_write_frame(file_.get(), packet.get()), "sound");
  }

  void write(AVCodecContext& encoder, int stream) {
    Owned<AVPacket> packet(av_packet_alloc());
    while (avcodec_receive_packet(&encoder, packet.get()) >= 0) {
      packet->stream_index = stream;
      av_packet_rescale_ts(packet.get(), encoder.time_base, file_->streams[stream]->time_base);
      checked(av_interleaved_write_frame(file_.get(), packet.get()), "packet");
    }
  }

  const VideoRecipe recipe_;
  Owned<AVFormatContext> file_;
  Owned<AVCodecContext> pictures_;
  AVStream* sound_stream_ = nullptr;
};

}  // namespace

void write_video_file(const std::string& path, const std::vector<std::vector<uint8_t>>& frames,
                      const VideoRecipe& recipe) {
  av_log_set_level(AV_LOG_QUIET);
  VideoWriter writer(path, recipe);
  for (size_t i = 0; i < frames.size(); ++i) {
    writer.add(frames[i], recipe.times.empty() ? static_cast<int64_t>(i) : recipe.times[i]);
  }
  writer.finish();
}

std::vector<std::vector<uint8_t>> made_frames(int count, int width, int height, int seed) {
  std::vector<std::vector<uint8_t>> frames;
  for (int k = 0; k < count; ++k) {
    std::vector<uint8_t> pixels;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (const int value : {x * 5 + k * 7 + seed, y * 6 + k * 3, (x + y) * 2 + k * 11 + seed * 5}) {
          pixels.push_back(static_cast<uint8_t>(value));
        }
      }
    }
    frames.push_back(std::move(pixels));
  }
  return frames;
}

}  // namespace stoker::data
