// SPDX-License-Identifier: Apache-2.0
#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>

#include <iostream>
#include <limits>
#include <new>
#include <streambuf>
#include <string>
#include <string_view>

#include "core/format.h"
#include "data/image/decoders.h"
#include "data/image/pixels/image_buffer.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {
namespace {

/// Between std::cerr and where it leads: what a thread writes while it decodes goes into a string, since OpenCV prints
/// why it gave up, without the name of a file.
class CerrFilter : public std::streambuf {
 public:
  explicit CerrFilter(std::streambuf* target) : target_(target) {}
  static std::string*& text_of_thread() {
    thread_local std::string* text = nullptr;
    return text;
  }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (text_of_thread() == nullptr) return target_->sputn(text, count);
    text_of_thread()->append(text, static_cast<size_t>(count));
    return count;
  }
  int overflow(int c) override {
    const char one = static_cast<char>(c);
    return c == traits_type::eof() || xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  int sync() override { return text_of_thread() == nullptr ? target_->pubsync() : 0; }

 private:
  std::streambuf* const target_;
};

/// Text of one decode.
class CapturedText {
 public:
  CapturedText() { CerrFilter::text_of_thread() = &text_; }
  ~CapturedText() { CerrFilter::text_of_thread() = nullptr; }
  CapturedText& operator=(CapturedText&&) = delete;  // not copied, not moved
  /// The reason in it, without the places in OpenCV's source.
  std::string reason() const {
    size_t begin = text_.find("error: (");
    if (begin != std::string::npos) begin = text_.find(") ", begin);
    if (begin == std::string::npos) return "";
    begin += 2;
    return core::printable(text_.substr(begin, text_.find(" in function", begin) - begin));
  }

 private:
  std::string text_;
};

/// OpenCV's threads would compete with the loader's, and its log with ours.
void quiet_opencv() {
  static const bool done = [] {
    cv::setNumThreads(0);
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    std::cerr.rdbuf(new CerrFilter(std::cerr.rdbuf()));  // to the end of the process, as std::cerr is
    return true;
  }();
  (void)done;
}

std::string webp_problem(const ByteView& file) {
  const uint64_t promised = uint64_t{file.little32(4)} + 8;
  if (promised <= file.size()) return "";
  return core::format("WebP cut short: {} of {} bytes", file.size(), promised);
}

/// The decoder takes memory by the size that stands inside the frame, which no limit has seen.
std::string frame_problem(const std::vector<uint8_t>& still, const WebpFrame& frame) {
  DecodeLimits any_size;
  any_size.max_megapixels = std::numeric_limits<double>::infinity();
  any_size.max_side = std::numeric_limits<int>::max();
  ImageHeader inside;
  if (std::string reason = read_header(still.data(), still.size(), any_size, inside); !reason.empty()) return reason;
  if (inside.width == frame.width && inside.height == frame.height) return "";
  return core::format("WebP frame of {}x{} pixels where {}x{} are promised", inside.width, inside.height, frame.width,
                      frame.height);
}

/// Checks the file's structure and names the bytes to decode: the file itself or what `scratch` then holds.
std::string prepare_webp(const ByteView& file, WebpFrame& frame, std::vector<uint8_t>& scratch) {
  if (std::string reason = webp_problem(file); !reason.empty()) return reason;
  if (!is_animated_webp(file.data(), file.size())) return "";
  if (std::string reason = first_webp_frame(file.data(), file.size(), frame, scratch); !reason.empty()) return reason;
  return frame_problem(scratch, frame);
}

}  // namespace

std::string decode_with_opencv(const ByteView& file, const ImageHeader& header, int channels,
                               const DecodeLimits& limits, ImageBuffer& out) {
  quiet_opencv();
  // The frame is the whole canvas unless an animation's first frame is smaller.
  WebpFrame frame{0, 0, header.width, header.height};
  std::vector<uint8_t> scratch;
  if (header.format == ImageFormat::webp) {
    if (std::string reason = prepare_webp(file, frame, scratch); !reason.empty()) return reason;
  }
  cv::Mat stored;
  const CapturedText captured;
  try {
    const uint8_t* const start = scratch.empty() ? file.data() : scratch.data();
    const size_t length = scratch.empty() ? file.size() : scratch.size();
    stored =
        cv::imdecode(cv::Mat(1, static_cast<int>(length), CV_8U, const_cast<uint8_t*>(start)), cv::IMREAD_UNCHANGED);
  } catch (const cv::Exception& error) {
    if (error.code == cv::Error::StsNoMem) throw std::bad_alloc();  // no fault of the image
    return "the decoder failed: " + error.err;
  }
  if (stored.empty()) {
    if (std::string reason = captured.reason(); !reason.empty()) return "damaged: " + reason;
    return header.format == ImageFormat::jpeg2000 ? "JPEG 2000 that is damaged, or of a kind that this OpenCV does not "
                                                    "read; convert it: opj_decompress -i "
                                                    "FILE -o FILE.png"
                                                  : "damaged: the decoder gave up";
  }
  const bool known_type =
      (stored.depth() == CV_8U || stored.depth() == CV_16U) && stored.channels() != 2 && stored.channels() <= 4;
  if (!known_type || stored.cols != frame.width || stored.rows != frame.height) return "pixels unlike its header";
  start_image(header.width, header.height, channels, out);
  const auto largest = static_cast<double>((1u << (stored.depth() == CV_8U ? 8 : header.bits)) - 1);
  const EightBits colours(limits.range, 0, largest, stored.depth() == CV_8U ? nullptr : limits.seen);
  const int samples = stored.channels();
  std::vector<uint8_t> eight(static_cast<size_t>(stored.cols) * static_cast<size_t>(samples));
  for (int y = 0; y < stored.rows; ++y) {
    const uint8_t* row = stored.ptr<uint8_t>(y);
    if (stored.depth() == CV_16U) {
      colours.row_of_16(row, int64_t{stored.cols} * samples, eight.data());
      row = eight.data();
    }
    convert_bgr_row(row, stored.cols, samples, true, channels, row_of(out, frame.top + y) + frame.left * channels);
  }
  return "";
}

/// The size and the kind of samples out of the codestream (ITU-T T.800, A.5.1), the colours out of the boxes around it.
std::string read_jpeg2000_header(const ByteView& file, ImageHeader& header) {
  constexpr const char* kCommand = "convert it: opj_decompress -i FILE -o FILE.png";
  constexpr uint32_t kSrgb = 16, kGray = 17, kMostComponents = 4;
  uint64_t stream = 0;
  const bool has_boxes = file.matches(4, "jP  ");
  uint32_t colours = 0;
  bool has_palette = false, has_alpha = false;
  for (uint64_t at = 0; has_boxes;) {
    if (!file.has(at, 8)) return "JPEG 2000 cut short inside its header";
    const uint64_t length = file.big32(at);
    if (file.matches(at + 4, "jp2c")) {
      stream = at + (length == 1 ? 16 : 8);
      break;
    }
    if (file.matches(at + 4, "jp2h")) {
      for (uint64_t inner = at + 8; inner + 8 <= at + length && file.has(inner, 8);) {
        const uint64_t bytes = file.big32(inner);
        if (file.matches(inner + 4, "colr") && file.u8(inner + 8) == 1 && colours == 0)
          colours = file.big32(inner + 11);
        has_palette = has_palette || file.matches(inner + 4, "pclr");
        has_alpha = has_alpha || file.matches(inner + 4, "cdef");
        if (bytes < 8) break;
        inner += bytes;
      }
    }
    if (length < 8) return "damaged JPEG 2000: a box without an end";
    at += length;
  }
  if (!file.matches(stream, "\xFF\x4F\xFF\x51") || !file.has(stream, 45))
    return "JPEG 2000 cut short inside its header";
  const uint64_t right = file.big32(stream + 8), bottom = file.big32(stream + 12);
  const uint64_t left = file.big32(stream + 16), top = file.big32(stream + 20);
  const uint32_t components = file.big16(stream + 40), depth = file.u8(stream + 42);
  if (right <= left || bottom <= top || right > 0x7FFFFFFF || bottom > 0x7FFFFFFF) {
    return "JPEG 2000 header with a size out of range";
  }
  if (components == 0 || components == 2 || components > kMostComponents) {
    return core::format("JPEG 2000 of {} channels is not read; {}", components, kCommand);
  }
  for (uint32_t i = 0; i < components; ++i) {
    const uint64_t at = stream + 42 + 3 * uint64_t{i};
    if (file.u8(at) != depth) return core::format("JPEG 2000 of channels of different kinds is not read; {}", kCommand);
    if (file.u8(at + 1) != 1 || file.u8(at + 2) != 1) {
      return core::format("JPEG 2000 of colours at lower resolution is not read; {}", kCommand);
    }
  }
  const uint32_t bits = (depth & 0x7F) + 1;
  if ((depth & 0x80) != 0 || (bits != 8 && bits != 16)) {
    return core::format("JPEG 2000 of {} bits{} is not read; {}", bits, (depth & 0x80) != 0 ? " with sign" : "",
                        kCommand);
  }
  if (has_palette || (colours != 0 && colours != kSrgb && colours != kGray) ||
      (components == 4 && !has_alpha && colours != kSrgb)) {
    return core::format("JPEG 2000 of {} is not read; {}",
                        has_palette       ? "a palette"
                        : components == 4 ? "4 channels that are not RGBA"
                                          : "other colours than RGB",
                        kCommand);
  }
  header.width = static_cast<int>(right - left);
  header.height = static_cast<int>(bottom - top);
  header.channels = static_cast<int>(components);
  header.bits = static_cast<int>(bits);
  return "";
}

namespace {

void append_text(std::vector<uint8_t>& bytes, std::string_view text) {
  for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
}

void append_little(std::vector<uint8_t>& bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

}  // namespace

// WebP container specification, "Extended File Format": flags at byte 20 of the file, animation is bit 1.
bool is_animated_webp(const uint8_t* bytes, uint64_t size) {
  const ByteView file(bytes, size);
  return file.matches(12, "VP8X") && (file.u8(20) & 0x02) != 0;
}

std::string first_webp_frame(const uint8_t* bytes, uint64_t size, WebpFrame& frame, std::vector<uint8_t>& still) {
  constexpr uint64_t kFirstChunk = 30, kFrameHeader = 16;
  const ByteView file(bytes, size);
  const int canvas_width = static_cast<int>(file.little24(24)) + 1,
            canvas_height = static_cast<int>(file.little24(27)) + 1;
  for (uint64_t at = kFirstChunk; file.has(at, 8);) {
    const uint64_t length = file.little32(at + 4);
    if (!file.matches(at, "ANMF")) {
      at += 8 + length + (length & 1);
      continue;
    }
    if (length < kFrameHeader || !file.has(at + 8, length)) return "WebP cut short inside its first frame";
    frame.left = 2 * static_cast<int>(file.little24(at + 8));
    frame.top = 2 * static_cast<int>(file.little24(at + 11));
    frame.width = static_cast<int>(file.little24(at + 14)) + 1;
    frame.height = static_cast<int>(file.little24(at + 17)) + 1;
    if (frame.left + frame.width > canvas_width || frame.top + frame.height > canvas_height) {
      return "WebP frame that lies outside the canvas";
    }
    const ByteView content = file.part(at + 8 + kFrameHeader, length - kFrameHeader);
    const bool separate_alpha = content.matches(0, "ALPH");
    still.clear();
    append_text(still, "RIFF");
    append_little(still, 4 + (separate_alpha ? 18 : 0) + content.size(), 4);
    append_text(still, "WEBP");
    if (separate_alpha) {  // only the extended format has the chunk
      append_text(still, "VP8X");
      append_little(still, 10, 4);
      append_little(still, 0x10, 4);
      append_little(still, static_cast<uint64_t>(frame.width - 1), 3);
      append_little(still, static_cast<uint64_t>(frame.height - 1), 3);
    }
    still.insert(still.end(), content.data(), content.data() + content.size());
    return "";
  }
  return "WebP animation without frames";
}

}  // namespace stoker::data
