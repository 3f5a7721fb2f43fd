// SPDX-License-Identifier: Apache-2.0
#include "data/image/jpeg/jpeg_encode.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

// After <cstdio>: they use FILE without declaring it.
#include <jpeglib.h>

#include <jerror.h>

#include "core/error.h"

namespace stoker::data {
namespace {

/// As in jpeg_decode.cpp: callbacks jump to where the work began, and nothing with a destructor lies between.
struct WriteSession {
  jpeg_compress_struct writer;
  jpeg_decompress_struct reader;  ///< decompressor of a transcode
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf on_error;
  char message[JMSG_LENGTH_MAX];
  unsigned char* bytes;  ///< what was written, from malloc
  unsigned long size;
  int max_scans;
};

void on_error(j_common_ptr codec) {
  auto& session = *static_cast<WriteSession*>(codec->client_data);
  (*session.errors.format_message)(codec, session.message);
  std::longjmp(session.on_error, 1);
}

void on_message(j_common_ptr codec, int level) {
  if (level < 0) on_error(codec);
}

void on_progress(j_common_ptr codec) {
  auto& session = *static_cast<WriteSession*>(codec->client_data);
  if (!codec->is_decompressor || session.reader.input_scan_number <= session.max_scans) return;
  std::snprintf(session.message, sizeof session.message, "more than %d scans", session.max_scans);
  std::longjmp(session.on_error, 1);
}

void open_writer(WriteSession& session) {
  session.writer.err = jpeg_std_error(&session.errors);
  session.errors.error_exit = on_error;
  session.errors.emit_message = on_message;
  session.writer.client_data = &session;
  jpeg_create_compress(&session.writer);
  jpeg_mem_dest(&session.writer, &session.bytes, &session.size);
}

/// Everything that the session holds goes away; what it wrote goes to `out` when all went well.
void close_session(WriteSession& session, bool good, std::vector<uint8_t>& out) {
  jpeg_destroy_compress(&session.writer);
  jpeg_destroy_decompress(&session.reader);
  out.clear();
  if (good) out.assign(session.bytes, session.bytes + session.size);
  std::free(session.bytes);
  if (!good && session.errors.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
}

bool write_pixels(WriteSession& session, const uint8_t* pixels, int width, int height, int channels, int quality,
                  ColourSampling sampling) {
  if (setjmp(session.on_error) != 0) return false;
  open_writer(session);
  jpeg_compress_struct& writer = session.writer;
  writer.image_width = static_cast<JDIMENSION>(width);
  writer.image_height = static_cast<JDIMENSION>(height);
  writer.input_components = channels;
  writer.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&writer);
  jpeg_set_quality(&writer, quality, TRUE);
  if (sampling == ColourSampling::full) writer.comp_info[0].h_samp_factor = writer.comp_info[0].v_samp_factor = 1;
  writer.dct_method = JDCT_ISLOW;
  writer.optimize_coding = TRUE;
  jpeg_start_compress(&writer, TRUE);
  while (writer.next_scanline < writer.image_height) {
    auto* row = const_cast<JSAMPLE*>(pixels + size_t{writer.next_scanline} * static_cast<size_t>(width) *
                                                  static_cast<size_t>(channels));
    jpeg_write_scanlines(&writer, &row, 1);
  }
  jpeg_finish_compress(&writer);
  return true;
}

/// JFIF and Adobe markers are written by the library itself.
bool writes_itself(const jpeg_compress_struct& writer, const jpeg_marker_struct& marker) {
  const auto begins = [&](const char* text, unsigned length) {
    return marker.data_length >= length && std::memcmp(marker.data, text, length) == 0;
  };
  return (writer.write_JFIF_header && marker.marker == JPEG_APP0 && begins("JFIF\0", 5)) ||
         (writer.write_Adobe_marker && marker.marker == JPEG_APP0 + 14 && begins("Adobe", 5));
}

/// False on failure; with nothing written when there is nothing to do.
bool transcode(WriteSession& session, const uint8_t* bytes, uint64_t size, bool& needed) {
  constexpr unsigned kWholeMarker = 0xFFFF;
  if (setjmp(session.on_error) != 0) return false;
  open_writer(session);
  jpeg_decompress_struct& reader = session.reader;
  reader.err = &session.errors;
  reader.client_data = &session;
  jpeg_create_decompress(&reader);
  session.progress.progress_monitor = on_progress;
  reader.progress = &session.progress;
  jpeg_mem_src(&reader, const_cast<uint8_t*>(bytes), static_cast<unsigned long>(size));
  jpeg_save_markers(&reader, JPEG_COM, kWholeMarker);
  for (int i = 0; i < 16; ++i) jpeg_save_markers(&reader, JPEG_APP0 + i, kWholeMarker);
  jpeg_read_header(&reader, TRUE);
  needed = reader.progressive_mode || reader.arith_code;
  if (!needed) return true;
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&reader);
  jpeg_compress_struct& writer = session.writer;
  jpeg_copy_critical_parameters(&reader, &writer);
  writer.optimize_coding = TRUE;
  writer.arith_code = FALSE;
  jpeg_write_coefficients(&writer, coefficients);
  for (const jpeg_marker_struct* marker = reader.marker_list; marker != nullptr; marker = marker->next) {
    if (!writes_itself(writer, *marker)) jpeg_write_marker(&writer, marker->marker, marker->data, marker->data_length);
  }
  jpeg_finish_compress(&writer);
  jpeg_finish_decompress(&reader);
  return true;
}

}  // namespace

void encode_jpeg(const uint8_t* pixels, int width, int height, int channels, int quality, std::vector<uint8_t>& out,
                 ColourSampling sampling) {
  WriteSession session{};
  const bool good = write_pixels(session, pixels, width, height, channels, quality, sampling);
  close_session(session, good, out);
  if (!good) throw core::Error(core::ErrorKind::bug, std::string("cannot write a JPEG: ") + session.message);
}

std::string to_baseline_jpeg(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits,
                             std::vector<uint8_t>& out) {
  WriteSession session{};
  session.max_scans = limits.max_jpeg_scans;
  bool needed = false;
  const bool good = transcode(session, bytes, size, needed);
  close_session(session, good, out);
  if (!needed) out.clear();
  return good ? "" : std::string("JPEG: ") + session.message;
}

}  // namespace stoker::data
