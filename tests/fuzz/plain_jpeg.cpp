// SPDX-License-Identifier: Apache-2.0
#include "plain_jpeg.h"

#include <csetjmp>
#include <cstdio>

// After <cstdio>: it uses FILE without declaring it.
#include <jpeglib.h>

#include <jerror.h>

namespace stoker::fuzz {
namespace {

struct PlainSession {
  jpeg_decompress_struct codec;
  jpeg_error_mgr errors;
  std::jmp_buf on_error;
};

void leave(j_common_ptr codec) { std::longjmp(static_cast<PlainSession*>(codec->client_data)->on_error, 1); }

/// Warnings about bytes between markers, odd application marks and a missing end marker leave pixels as they are: these
/// files are read. A block that lacks bytes has a warning of its own.
void leave_on_warning(j_common_ptr codec, int level) {
  const int code = codec->err->msg_code;
  const bool is_about_pixels = code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR &&
                               code != JWRN_NOT_SEQUENTIAL && code != JWRN_JPEG_EOF;
  if (level < 0 && is_about_pixels) leave(codec);
}

/// Nothing with a destructor lives here: errors jump out.
bool decode_in(PlainSession& session, const uint8_t* bytes, size_t size, int channels, PlainImage& image) {
  if (setjmp(session.on_error) != 0) return false;
  jpeg_decompress_struct& codec = session.codec;
  codec.err = jpeg_std_error(&session.errors);
  session.errors.error_exit = leave;
  session.errors.emit_message = leave_on_warning;
  codec.client_data = &session;
  jpeg_create_decompress(&codec);
  jpeg_mem_src(&codec, const_cast<uint8_t*>(bytes), static_cast<unsigned long>(size));
  jpeg_read_header(&codec, TRUE);
  if (codec.num_components == 4) return false;
  codec.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&codec);
  image.width = static_cast<int>(codec.output_width);
  image.height = static_cast<int>(codec.output_height);
  const size_t row_bytes = static_cast<size_t>(codec.output_width) * static_cast<size_t>(channels);
  image.pixels.resize(row_bytes * codec.output_height);
  while (codec.output_scanline < codec.output_height) {
    uint8_t* row = image.pixels.data() + codec.output_scanline * row_bytes;
    jpeg_read_scanlines(&codec, &row, 1);
  }
  jpeg_finish_decompress(&codec);
  return true;
}

}  // namespace

bool decode_plainly(const uint8_t* bytes, size_t size, int channels, PlainImage& image) {
  PlainSession session{};
  const bool good = decode_in(session, bytes, size, channels, image);
  jpeg_destroy_decompress(&session.codec);
  return good;
}

}  // namespace stoker::fuzz
