// SPDX-License-Identifier: Apache-2.0
// PNG through libpng itself: what it reports goes into the message of the file.
#include <png.h>
#include <zlib.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "core/format.h"
#include "data/image/decoders.h"
#include "data/image/pixels/image_buffer.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {
namespace {

/// libpng may not return from an error: it jumps to where the work began, past nothing that has a destructor.
struct PngSession {
  const std::vector<uint8_t>* bytes = nullptr;
  size_t at = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf on_error;
  char message[200] = "";
  int samples = 0, bits = 0;
  bool is_interlaced = false;
  ~PngSession() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_png_error(png_structp png, png_const_charp text) {
  auto& session = *static_cast<PngSession*>(png_get_error_ptr(png));
  std::snprintf(session.message, sizeof session.message, "%s", text);
  std::longjmp(session.on_error, 1);
}

void on_png_warning(png_structp, png_const_charp) {}  // of chunks and sizes that make no pixels

void read_png_bytes(png_structp png, png_bytep out, size_t count) {
  auto& session = *static_cast<PngSession*>(png_get_io_ptr(png));
  if (count > session.bytes->size() - session.at) png_error(png, "cut short");
  std::memcpy(out, session.bytes->data() + session.at, count);
  session.at += count;
}

/// A number beyond the colours is a gray, as in Pillow.
void extend_palette(PngSession& session) {
  png_colorp colours = nullptr;
  int count = 0;
  const int whole = 1 << png_get_bit_depth(session.png, session.info);
  if (png_get_PLTE(session.png, session.info, &colours, &count) == 0 || count >= whole) return;
  png_color all[256];
  for (int i = 0; i < whole; ++i) {
    const auto gray = static_cast<png_byte>(i);
    all[i] = i < count ? colours[i] : png_color{gray, gray, gray};
  }
  png_set_PLTE(session.png, session.info, all, whole);
}

/// False: an error came up, whose message stands in the session. The same holds below.
bool start_png(PngSession& session) {
  if (setjmp(session.on_error) != 0) return false;
  png_structp const png = session.png;
  png_set_read_fn(png, &session, read_png_bytes);
  png_set_option(png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);  // some writers promise less than they use
  png_read_info(png, session.info);
  const int kind = png_get_color_type(png, session.info);
  if (kind == PNG_COLOR_TYPE_PALETTE) {
    extend_palette(session);
    png_set_palette_to_rgb(png);
    if (png_get_valid(png, session.info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
  }
  if (kind == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  const uint16_t probe = 1;
  if (*reinterpret_cast<const uint8_t*>(&probe) == 1) png_set_swap(png);
  session.is_interlaced = png_set_interlace_handling(png) > 1;
  png_read_update_info(png, session.info);
  session.samples = png_get_channels(png, session.info);
  session.bits = png_get_bit_depth(png, session.info);
  return true;
}

bool read_png_row(PngSession& session, uint8_t* row) {
  if (setjmp(session.on_error) != 0) return false;
  png_read_row(session.png, row, nullptr);
  return true;
}

bool read_png_rows(PngSession& session, uint8_t** rows) {
  if (setjmp(session.on_error) != 0) return false;
  png_read_image(session.png, rows);
  return true;
}

}  // namespace

std::string decode_png(const ByteView& file, const ImageHeader& header, int channels, const DecodeLimits& limits,
                       ImageBuffer& out) {
  std::vector<uint8_t> kept;
  if (std::string reason = keep_pixel_chunks(file.data(), file.size(), kept); !reason.empty()) return reason;
  PngSession session;
  session.bytes = &kept;
  session.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &session, on_png_error, on_png_warning);
  if (session.png != nullptr) session.info = png_create_info_struct(session.png);
  if (session.info == nullptr) throw std::bad_alloc();
  const auto damage = [&] { return core::format("damaged PNG: {}", core::printable(session.message)); };
  if (!start_png(session)) return damage();
  const auto width = static_cast<size_t>(header.width), height = static_cast<size_t>(header.height);
  const size_t numbers = width * static_cast<size_t>(session.samples);
  const bool is_wide = session.bits == 16, is_plain = !is_wide && session.samples == channels;
  out.width = header.width;
  out.height = header.height;
  out.channels = channels;
  if (out.pixels.size() < width * height * static_cast<size_t>(channels)) {
    out.pixels.resize(width * height * static_cast<size_t>(channels));
  }
  const size_t row_bytes = numbers * (is_wide ? 2 : 1);
  std::vector<uint8_t> stored(session.is_interlaced ? row_bytes * height : row_bytes), eight(is_wide ? numbers : 0);
  if (session.is_interlaced) {
    std::vector<uint8_t*> rows(height);
    for (size_t y = 0; y < height; ++y) rows[y] = stored.data() + y * row_bytes;
    if (!read_png_rows(session, rows.data())) return damage();
  }
  const EightBits colours(limits.range, 0, 65535, is_wide ? limits.seen : nullptr), whole({}, 0, 65535);
  for (size_t y = 0; y < height; ++y) {
    uint8_t* const to = row_of(out, static_cast<int64_t>(y));
    uint8_t* from = session.is_interlaced ? stored.data() + y * row_bytes : is_plain ? to : stored.data();
    if (!session.is_interlaced && !read_png_row(session, from)) return damage();
    if (is_wide) {
      colours.row_of_16(from, static_cast<int64_t>(numbers), eight.data());
      const auto samples = static_cast<size_t>(session.samples);
      for (size_t i = samples - 1; samples % 2 == 0 && i < numbers; i += samples) {
        whole.row_of_16(from + 2 * i, 1, eight.data() + i);
      }
      from = eight.data();
    }
    if (from != to) convert_row(from, header.width, session.samples, true, channels, to);
  }
  return "";
}

std::string keep_pixel_chunks(const uint8_t* bytes, uint64_t size, std::vector<uint8_t>& kept) {
  constexpr uint64_t kSignature = 8, kFrame = 12;  // a chunk's length, name and checksum
  const ByteView file(bytes, size);
  kept.assign(bytes, bytes + kSignature);
  bool has_pixels = false;
  for (uint64_t at = kSignature;;) {
    const uint64_t length = file.big32(at);
    const auto is = [&](const char* name) { return file.matches(at + 4, name); };
    if (!file.has(at, kFrame) || !file.has(at, kFrame + length)) {
      if (has_pixels && !is("IDAT")) return "";  // all pixels may be there: their decoder finds out
      return core::format("PNG cut short at byte {}", size);
    }
    if (is("IHDR") || is("PLTE") || is("tRNS") || is("IDAT") || is("IEND")) {
      const auto checksum = ::crc32(0, bytes + at + 4, static_cast<uInt>(length + 4));
      if (checksum != file.big32(at + 8 + length)) {
        return core::format("PNG chunk {} at byte {} is damaged: its checksum does not match",
                            std::string(bytes + at + 4, bytes + at + 8), at);
      }
      kept.insert(kept.end(), bytes + at, bytes + at + kFrame + length);
      has_pixels = has_pixels || is("IDAT");
      if (is("IEND")) return has_pixels ? "" : "PNG without pixels";
    }
    at += kFrame + length;
  }
}

}  // namespace stoker::data
