// SPDX-License-Identifier: Apache-2.0
#include "data/jpeg_decode.h"

#include <csetjmp>
#include <cstdio>
#include <new>
#include <vector>

// After <cstdio>: they use FILE without declaring it.
#include <jpeglib.h>

#include <jerror.h>

#include "data/convert.h"

namespace stoker::data {
namespace {

/// libjpeg reports errors by calling back, and callbacks may not return: they jump to where the decode began.
/// Nothing with a destructor lives between there and here.
struct JpegSession {
  jpeg_decompress_struct codec;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf on_error;
  char message[JMSG_LENGTH_MAX];
  int max_scans;
};

JpegSession& session_of(j_common_ptr codec) { return *static_cast<JpegSession*>(codec->client_data); }

[[noreturn]] void fail_session(JpegSession& session) {
  (*session.errors.format_message)(reinterpret_cast<j_common_ptr>(&session.codec), session.message);
  std::longjmp(session.on_error, 1);
}

void on_jpeg_error(j_common_ptr codec) { fail_session(session_of(codec)); }

void on_jpeg_message(j_common_ptr codec, int level) {
  if (level < 0) fail_session(session_of(codec));  // a warning: the pixels are made up from here on
}

void on_jpeg_progress(j_common_ptr codec) {
  JpegSession& session = session_of(codec);
  if (session.codec.input_scan_number <= session.max_scans) return;
  std::snprintf(session.message, sizeof session.message, "more than %d scans", session.max_scans);
  std::longjmp(session.on_error, 1);
}

void open_session(JpegSession& session, const uint8_t* bytes, uint64_t size) {
  jpeg_decompress_struct& codec = session.codec;
  codec.err = jpeg_std_error(&session.errors);
  session.errors.error_exit = on_jpeg_error;
  session.errors.emit_message = on_jpeg_message;
  codec.client_data = &session;
  jpeg_create_decompress(&codec);
  session.progress.progress_monitor = on_jpeg_progress;
  codec.progress = &session.progress;
  jpeg_mem_src(&codec, const_cast<uint8_t*>(bytes), static_cast<unsigned long>(size));
  jpeg_read_header(&codec, TRUE);
  codec.dct_method = JDCT_ISLOW;
  codec.do_fancy_upsampling = TRUE;
}

/// What libjpeg converts to by itself; the last step from CMYK is ours.
J_COLOR_SPACE output_space(const jpeg_decompress_struct& codec, int channels) {
  if (codec.jpeg_color_space == JCS_CMYK || codec.jpeg_color_space == JCS_YCCK) return JCS_CMYK;
  return channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGB;
}

/// A CMYK row to RGB or gray. Adobe stores inverted inks: 255 is no ink.
void convert_cmyk_row(const uint8_t* inks, int width, bool inverted, int channels, uint8_t* out) {
  for (int x = 0; x < width; ++x, inks += 4) {
    uint32_t light[4];
    for (int i = 0; i < 4; ++i) light[i] = inverted ? inks[i] : 255u - inks[i];
    uint32_t rgb[3];
    for (int i = 0; i < 3; ++i) rgb[i] = (light[i] * light[3] + 127) / 255;
    if (channels == 1) {
      *out++ = luma(rgb[0], rgb[1], rgb[2]);
    } else {
      for (const uint32_t value : rgb) *out++ = static_cast<uint8_t>(value);
    }
  }
}

/// False when an error came up; the message then stands in the session.
bool begin_decode(JpegSession& session, const uint8_t* bytes, uint64_t size, int channels) {
  if (setjmp(session.on_error) != 0) return false;
  open_session(session, bytes, size);
  session.codec.out_color_space = output_space(session.codec, channels);
  jpeg_calc_output_dimensions(&session.codec);
  return true;
}

bool read_rows(JpegSession& session, int channels, uint8_t* ink_row, uint8_t* pixels) {
  if (setjmp(session.on_error) != 0) return false;
  jpeg_decompress_struct& codec = session.codec;
  jpeg_start_decompress(&codec);
  const size_t row_bytes = static_cast<size_t>(codec.output_width) * static_cast<size_t>(channels);
  while (codec.output_scanline < codec.output_height) {
    uint8_t* const row = pixels + codec.output_scanline * row_bytes;
    uint8_t* target = ink_row != nullptr ? ink_row : row;
    jpeg_read_scanlines(&codec, &target, 1);
    if (ink_row != nullptr) {
      convert_cmyk_row(ink_row, static_cast<int>(codec.output_width), codec.saw_Adobe_marker != 0, channels, row);
    }
  }
  jpeg_finish_decompress(&codec);  // reads to the end marker: a file cut short after its last row is found
  return true;
}

}  // namespace

std::string decode_jpeg(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                        ImageBuffer& out) {
  JpegSession session{};
  session.max_scans = limits.max_jpeg_scans;
  bool good = begin_decode(session, bytes, size, channels);
  const double megapixels = 1e-6 * session.codec.output_width * session.codec.output_height;
  if (good && megapixels > limits.max_megapixels) {  // two frame headers, and read_header() saw the other one
    std::snprintf(session.message, sizeof session.message, "%.1f megapixels, unlike its first header", megapixels);
    good = false;
  }
  if (good) {
    out.width = static_cast<int>(session.codec.output_width);
    out.height = static_cast<int>(session.codec.output_height);
    out.channels = channels;
    const size_t needed = size_t{session.codec.output_width} * session.codec.output_height * static_cast<size_t>(channels);
    if (out.pixels.size() < needed) out.pixels.resize(needed);
    std::vector<uint8_t> ink_row;
    if (session.codec.out_color_space == JCS_CMYK) ink_row.resize(size_t{session.codec.output_width} * 4);
    good = read_rows(session, channels, ink_row.empty() ? nullptr : ink_row.data(), out.pixels.data());
  }
  const bool out_of_memory = !good && session.errors.msg_code == JERR_OUT_OF_MEMORY;
  jpeg_destroy_decompress(&session.codec);
  if (out_of_memory) throw std::bad_alloc();  // no fault of the image
  return good ? "" : std::string("JPEG: ") + session.message;
}

}  // namespace stoker::data
