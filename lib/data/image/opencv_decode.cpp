// SPDX-License-Identifier: Apache-2.0
#include "data/image/opencv_decode.h"

#include <limits>
#include <new>
#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>

#include "core/format.h"
#include "data/image/pixels/convert.h"
#include "data/image/png_chunks.h"
#include "data/image/webp_frame.h"
#include "data/storage/byte_view.h"

namespace stoker::data {
namespace {

/// OpenCV's threads would compete with the loader's, and its log with ours.
void quiet_opencv() {
  static const bool done = [] {
    cv::setNumThreads(0);
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    return true;
  }();
  (void)done;
}

uint32_t eight_bits(uint8_t value) { return value; }
uint32_t eight_bits(uint16_t value) { return (value + 128u) / 257u; }

/// One row of 1 (gray), 3 (BGR) or 4 (BGRA) channels to 1 (gray) or 3 (RGB), alpha over black.
template <int in_channels, int channels, typename Value>
void convert_pixels(const Value* in, int width, bool use_alpha, uint8_t* out) {
  for (int x = 0; x < width; ++x, in += in_channels, out += channels) {
    uint32_t rgb[3];
    for (int c = 0; c < 3; ++c) rgb[c] = eight_bits(in_channels == 1 ? in[0] : in[2 - c]);
    if (in_channels == 4 && use_alpha) {
      for (uint32_t& value : rgb) value = (value * eight_bits(in[3]) + 127) / 255;
    }
    if (channels == 3) {
      for (int c = 0; c < 3; ++c) out[c] = static_cast<uint8_t>(rgb[c]);
    } else {
      out[0] = in_channels == 1 ? static_cast<uint8_t>(rgb[0]) : luma(rgb[0], rgb[1], rgb[2]);
    }
  }
}

/// Numbers of channels that the compiler knows make one loop without choices.
template <typename Value>
void convert_row(const Value* in, int width, int in_channels, bool use_alpha, int channels, uint8_t* out) {
  const bool is_gray = channels == 1;
  switch (in_channels) {
    case 1: return (is_gray ? convert_pixels<1, 1, Value> : convert_pixels<1, 3, Value>)(in, width, use_alpha, out);
    case 3: return (is_gray ? convert_pixels<3, 1, Value> : convert_pixels<3, 3, Value>)(in, width, use_alpha, out);
    default: return (is_gray ? convert_pixels<4, 1, Value> : convert_pixels<4, 3, Value>)(in, width, use_alpha, out);
  }
}

/// A BMP's fourth byte is alpha only where the header says so.
bool bmp_has_alpha(const ByteView& file) { return file.little32(14) >= 56 && file.little32(66) != 0; }

/// "" or why the rows that the header promises are not all there. Compressed rows are the decoder's to check.
std::string bmp_trouble(const ByteView& file, const ImageHeader& header) {
  const bool core_header = file.little32(14) == 12;
  const uint32_t compression = core_header ? 0 : file.little32(30);
  if (compression > 3) return core::format("BMP compression {} is not read", compression);
  if (compression != 0 && compression != 3) return "";
  const uint64_t bits_per_pixel = file.little16(core_header ? 24 : 28);
  const uint64_t row_bytes = (static_cast<uint64_t>(header.width) * bits_per_pixel + 31) / 32 * 4;
  const uint64_t promised = file.little32(10) + row_bytes * static_cast<uint64_t>(header.height);
  if (promised <= file.size()) return "";
  return core::format("BMP cut short: {} of {} bytes", file.size(), promised);
}

std::string webp_trouble(const ByteView& file) {
  const uint64_t promised = uint64_t{file.little32(4)} + 8;
  if (promised <= file.size()) return "";
  return core::format("WebP cut short: {} of {} bytes", file.size(), promised);
}

/// The decoder takes memory by the size that stands inside the frame, which no limit has seen.
std::string frame_trouble(const std::vector<uint8_t>& still, const WebpFrame& frame) {
  const DecodeLimits any_size{std::numeric_limits<double>::infinity(), std::numeric_limits<int>::max()};
  ImageHeader inside;
  if (std::string reason = read_header(still.data(), still.size(), any_size, inside); !reason.empty()) return reason;
  if (inside.width == frame.width && inside.height == frame.height) return "";
  return core::format("WebP frame of {}x{} pixels where {}x{} are promised", inside.width, inside.height, frame.width,
                      frame.height);
}

/// Checks the file's structure and names the bytes to decode: the file itself or what `scratch` then holds.
std::string prepare_bytes(const ByteView& file, const ImageHeader& header, WebpFrame& frame,
                          std::vector<uint8_t>& scratch) {
  switch (header.format) {
    case ImageFormat::png: return keep_pixel_chunks(file.data(), file.size(), scratch);
    case ImageFormat::bmp: return bmp_trouble(file, header);
    case ImageFormat::tiff: return "";  // libtiff checks what lies behind the directory
    case ImageFormat::webp: {
      if (std::string reason = webp_trouble(file); !reason.empty()) return reason;
      if (!is_animated_webp(file.data(), file.size())) return "";
      if (std::string reason = first_webp_frame(file.data(), file.size(), frame, scratch); !reason.empty()) {
        return reason;
      }
      return frame_trouble(scratch, frame);
    }
    default: return "not a format for OpenCV";
  }
}

void write_pixels_of(const cv::Mat& stored, const WebpFrame& frame, bool use_alpha, ImageBuffer& out) {
  for (int y = 0; y < stored.rows; ++y) {
    uint8_t* const row =
        out.pixels.data() + (static_cast<int64_t>(frame.top + y) * out.width + frame.left) * out.channels;
    if (stored.depth() == CV_16U) {
      convert_row(stored.ptr<uint16_t>(y), stored.cols, stored.channels(), use_alpha, out.channels, row);
    } else {
      convert_row(stored.ptr<uint8_t>(y), stored.cols, stored.channels(), use_alpha, out.channels, row);
    }
  }
}

}  // namespace

std::string decode_with_opencv(const uint8_t* bytes, uint64_t size, const ImageHeader& header, int channels,
                               ImageBuffer& out) {
  quiet_opencv();
  const ByteView file(bytes, size);
  // As stored; the frame is the whole canvas unless an animation's first frame is smaller.
  const bool turned = header.orientation >= 5;
  WebpFrame frame{0, 0, turned ? header.height : header.width, turned ? header.width : header.height};
  const int width = frame.width, height = frame.height;
  std::vector<uint8_t> scratch;
  if (std::string reason = prepare_bytes(file, {header.format, width, height, header.channels, 1}, frame, scratch);
      !reason.empty()) {
    return reason;
  }
  cv::Mat stored;
  try {
    const uint8_t* const start = scratch.empty() ? bytes : scratch.data();
    const size_t length = scratch.empty() ? size : scratch.size();
    stored =
        cv::imdecode(cv::Mat(1, static_cast<int>(length), CV_8U, const_cast<uint8_t*>(start)), cv::IMREAD_UNCHANGED);
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) throw std::bad_alloc();  // no fault of the image
    return "the decoder failed: " + error.err;
  }
  if (stored.empty()) return "damaged: the decoder gave up";
  const bool known_type =
      (stored.depth() == CV_8U || stored.depth() == CV_16U) && stored.channels() != 2 && stored.channels() <= 4;
  if (!known_type || stored.cols != frame.width || stored.rows != frame.height) return "pixels unlike its header";
  out.width = width;
  out.height = height;
  out.channels = channels;
  out.pixels.assign(static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels), 0);
  write_pixels_of(stored, frame, header.format != ImageFormat::bmp || bmp_has_alpha(file), out);
  return "";
}

}  // namespace stoker::data
