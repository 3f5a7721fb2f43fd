// SPDX-License-Identifier: Apache-2.0
#include "data/video/video_pixels.h"

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <cstring>
#include <new>

#include "core/format.h"

namespace stoker::data {
namespace {

constexpr int kRowAlignment = 64;  // bytes

/// Moves pixel by pixel.
void orient(const uint8_t* pixels, size_t stride, int height, int width, const VideoOrientation& orientation,
            uint8_t* out) {
  const int out_width = orientation.swaps_axes ? height : width, out_height = orientation.swaps_axes ? width : height;
  for (int y = 0; y < out_height; ++y) {
    const int v = orientation.flips_y ? out_height - 1 - y : y;
    for (int x = 0; x < out_width; ++x) {
      const int u = orientation.flips_x ? out_width - 1 - x : x;
      const int column = orientation.swaps_axes ? v : u, row = orientation.swaps_axes ? u : v;
      const uint8_t* const from = pixels + static_cast<size_t>(row) * stride + static_cast<size_t>(column) * 3;
      out[0] = from[0];
      out[1] = from[1];
      out[2] = from[2];
      out += 3;
    }
  }
}

}  // namespace

FrameConverter::FrameConverter() = default;
FrameConverter::~FrameConverter() { sws_freeContext(scaler_); }

std::string FrameConverter::convert(const AVFrame& frame, const VideoOrientation& orientation,
                                    std::vector<uint8_t>& rgb, int& height, int& width) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  // The flags that ffmpeg has without any option: other ones give other pixels.
  scaler_ = sws_getCachedContext(scaler_, frame.width, frame.height, format, frame.width, frame.height,
                                 AV_PIX_FMT_RGB24, SWS_BICUBIC, nullptr, nullptr, nullptr);
  if (scaler_ == nullptr) {
    const char* const name = av_get_pix_fmt_name(format);
    return core::format("its pixels ({}) cannot be made RGB", name == nullptr ? "of an unknown kind" : name);
  }
  int *old_matrix = nullptr, *out_matrix = nullptr;
  int is_full = 0, out_is_full = 0, brightness = 0, contrast = 0, saturation = 0;
  if (sws_getColorspaceDetails(scaler_, &old_matrix, &is_full, &out_matrix, &out_is_full, &brightness, &contrast,
                               &saturation) >= 0) {
    // RGB of more than 8 bits passes through YUV, with the usual matrix.
    const int* const matrix =
        sws_getCoefficients(frame.colorspace == AVCOL_SPC_RGB ? int{SWS_CS_DEFAULT} : int{frame.colorspace});
    if (frame.color_range != AVCOL_RANGE_UNSPECIFIED) is_full = frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
    sws_setColorspaceDetails(scaler_, matrix, is_full, matrix, out_is_full, brightness, contrast, saturation);
  }
  const auto packed = static_cast<size_t>(frame.width) * 3;
  const size_t stride = (packed + kRowAlignment - 1) / kRowAlignment * kRowAlignment + kRowAlignment;
  const size_t needed = stride * static_cast<size_t>(frame.height) + kRowAlignment;
  if (rows_.size() < needed) rows_.resize(needed);
  uint8_t* const first = rows_.data() + (kRowAlignment - reinterpret_cast<uintptr_t>(rows_.data()) % kRowAlignment);
  uint8_t* const planes[4] = {first, nullptr, nullptr, nullptr};
  const int strides[4] = {static_cast<int>(stride), 0, 0, 0};
  if (sws_scale(scaler_, frame.data, frame.linesize, 0, frame.height, planes, strides) != frame.height) {
    return "its pixels cannot be made RGB";
  }
  const size_t bytes = packed * static_cast<size_t>(frame.height);
  if (rgb.size() < bytes) rgb.resize(bytes);
  height = orientation.swaps_axes ? frame.width : frame.height;
  width = orientation.swaps_axes ? frame.height : frame.width;
  if (orientation.swaps_axes || orientation.flips_x || orientation.flips_y) {
    orient(first, stride, frame.height, frame.width, orientation, rgb.data());
    return "";
  }
  for (int y = 0; y < frame.height; ++y) {
    std::memcpy(rgb.data() + static_cast<size_t>(y) * packed, first + static_cast<size_t>(y) * stride, packed);
  }
  return "";
}

}  // namespace stoker::data
