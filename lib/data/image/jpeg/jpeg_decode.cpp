// SPDX-License-Identifier: Apache-2.0
#include "data/image/jpeg/jpeg_decode.h"

#include <algorithm>
#include <chrono>
#include <csetjmp>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "data/image/jpeg/entropy_decoder.h"
#include "data/image/jpeg/jpeg_library.h"
#include "data/image/pixels/image_buffer.h"

namespace stoker::data {
namespace {

constexpr int kCallsPerLookAtTheClock = 64;

using Clock = std::chrono::steady_clock;

/// Why libjpeg was left in the middle.
enum class Failure { none, bad_image, entropy_gave_up, too_slow };

/// The end marker may be missing, or other bytes may stand in its place, which are then not looked at; damage gives the
/// pixels that libjpeg makes up.
enum class Tolerated { nothing, missing_end, other_end, damage };

/// libjpeg reports errors by calling back, and callbacks may not return: they jump to where the decode began.
/// Nothing with a destructor lives between there and here.
struct JpegSession {
  jpeg_decompress_struct codec;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf on_error;
  char message[JMSG_LENGTH_MAX];
  Failure failure;
  int max_scans;
  int progress_calls;
  Clock::time_point give_up_at;
  EntropyDecoder* entropy;  ///< null: libjpeg's own
  bool entropy_taken_over;
  bool has_left_over;  ///< bytes between the last block of a scan and the next marker
  bool is_in_pixels;   ///< behind the headers
  Tolerated tolerated;
};

JpegSession& session_of(j_common_ptr codec) { return *static_cast<JpegSession*>(codec->client_data); }

[[noreturn]] void leave_session(JpegSession& session, Failure failure) {
  session.failure = failure;
  std::longjmp(session.on_error, 1);
}

[[noreturn]] void fail_session(JpegSession& session) {
  (*session.errors.format_message)(reinterpret_cast<j_common_ptr>(&session.codec), session.message);
  leave_session(session, Failure::bad_image);
}

void on_jpeg_error(j_common_ptr codec) { fail_session(session_of(codec)); }

void on_jpeg_message(j_common_ptr codec, int level) {
  if (level >= 0) return;
  JpegSession& session = session_of(codec);
  const int code = session.errors.msg_code;
  // Bytes that stand before a marker, and what is odd in headers, touch no pixel; in all other cases these are made up
  // from here on. Where bytes are left over before the marker of a restart within pixels, something was not read.
  constexpr int kFirstRestart = 0xD0, kLastRestart = 0xD7;
  const int marker = session.errors.msg_parm.i[1];
  const bool is_restart = session.is_in_pixels && marker >= kFirstRestart && marker <= kLastRestart;
  const bool is_left_over = code == JWRN_EXTRANEOUS_DATA && !is_restart;
  if (is_left_over && (session.is_in_pixels || marker == JPEG_EOI)) session.has_left_over = true;
  if (is_left_over || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM || code == JWRN_NOT_SEQUENTIAL) return;
  const bool may_lack_end = session.tolerated == Tolerated::missing_end || session.tolerated == Tolerated::other_end;
  if (code == JWRN_JPEG_EOF && may_lack_end) return;
  if (session.tolerated != Tolerated::damage) fail_session(session);
}

void on_jpeg_progress(j_common_ptr codec) {
  JpegSession& session = session_of(codec);
  if (session.codec.input_scan_number > session.max_scans) {
    std::snprintf(session.message, sizeof session.message, "more than %d scans", session.max_scans);
    leave_session(session, Failure::bad_image);
  }
  if (++session.progress_calls % kCallsPerLookAtTheClock != 0) return;
  if (Clock::now() > session.give_up_at) leave_session(session, Failure::too_slow);
}

/// Replaces libjpeg's own entropy decoding.
boolean on_jpeg_mcu(j_decompress_ptr codec, JBLOCKROW* blocks) {
  JpegSession& session = *static_cast<JpegSession*>(codec->client_data);
  if (!session.entropy->read_mcu(*codec, blocks)) leave_session(session, Failure::entropy_gave_up);
  return TRUE;
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

/// The colours that libjpeg converts to; the last step from CMYK is ours.
J_COLOR_SPACE output_space(const jpeg_decompress_struct& codec, int channels) {
  if (codec.jpeg_color_space == JCS_CMYK || codec.jpeg_color_space == JCS_YCCK) return JCS_CMYK;
  return channels == 1 ? JCS_GRAYSCALE : JCS_EXT_RGB;
}

/// A CMYK row to RGB or gray. All writers store inverted inks, as Adobe does: 255 is no ink.
void convert_cmyk_row(const uint8_t* inks, int width, int channels, uint8_t* out) {
  for (int x = 0; x < width; ++x, inks += 4) {
    uint32_t rgb[3];
    for (int i = 0; i < 3; ++i) rgb[i] = (uint32_t{inks[i]} * inks[3] + 127) / 255;
    if (channels == 1) {
      *out++ = luma(rgb[0], rgb[1], rgb[2]);
    } else {
      for (const uint32_t value : rgb) *out++ = static_cast<uint8_t>(value);
    }
  }
}

/// Whether the image is there to its end; what follows it does not matter.
bool has_end_marker(const uint8_t* bytes, uint64_t size) {
  constexpr uint8_t kFirstRestart = 0xD0, kLastRestart = 0xD7, kStart = 0xD8;
  if (size >= 4 && bytes[size - 2] == 0xFF && bytes[size - 1] == JPEG_EOI) return true;
  // Entropy-coded data has a 0 behind each FF, so that a marker is met only where one is.
  for (uint64_t at = 2; at + 1 < size;) {
    const void* const found = std::memchr(bytes + at, 0xFF, size - 1 - at);
    if (found == nullptr) return false;
    at = static_cast<uint64_t>(static_cast<const uint8_t*>(found) - bytes) + 1;
    const uint8_t marker = bytes[at];
    if (marker == JPEG_EOI) return true;
    if (marker == kStart) return false;  // another image begins
    const bool stands_alone = marker <= 1 || (marker >= kFirstRestart && marker <= kLastRestart);
    if (marker == 0xFF) continue;  // a fill byte
    ++at;
    if (stands_alone) continue;
    if (at + 2 > size) return false;
    at += std::max<uint64_t>(2, uint64_t{bytes[at]} << 8 | bytes[at + 1]);
  }
  return false;
}

/// False when an error came up; the message then stands in the session. The same holds below.
bool read_session_header(JpegSession& session, const uint8_t* bytes, uint64_t size, int channels) {
  if (setjmp(session.on_error) != 0) return false;
  open_session(session, bytes, size);
  session.codec.out_color_space = output_space(session.codec, channels);
  jpeg_calc_output_dimensions(&session.codec);
  return true;
}

/// Columns can be left out where each block of pixels depends on its neighbours only: baseline with the usual
/// sampling of chroma.
bool allows_regions(const jpeg_decompress_struct& codec) {
  if (codec.progressive_mode || codec.arith_code || (codec.num_components != 1 && codec.num_components != 3))
    return false;
  for (int c = 1; c < codec.num_components; ++c) {
    if (codec.comp_info[c].h_samp_factor != 1 || codec.comp_info[c].v_samp_factor != 1) return false;
  }
  return codec.comp_info[0].h_samp_factor <= 2 && codec.comp_info[0].v_samp_factor <= 2;
}

/// Starts the decode and widens `region` to what it will give: whole blocks and one more on each side, since
/// the smooth upsampling at the rim of what is decoded differs from that inside.
bool start_region(JpegSession& session, Region& region) {
  if (setjmp(session.on_error) != 0) return false;
  jpeg_decompress_struct& codec = session.codec;
  const int width = static_cast<int>(codec.output_width), height = static_cast<int>(codec.output_height);
  session.is_in_pixels = true;
  if (session.tolerated == Tolerated::damage || !allows_regions(codec)) region = {0, 0, width, height};
  jpeg_start_decompress(&codec);
  session.entropy_taken_over = session.entropy != nullptr && session.entropy->start(codec);
  if (session.entropy_taken_over) EntropyDecoder::take_over(codec, on_jpeg_mcu);
  const int block = codec.max_h_samp_factor * DCTSIZE;
  JDIMENSION left = static_cast<JDIMENSION>(std::max(0, region.left / block - 1) * block);
  JDIMENSION columns =
      static_cast<JDIMENSION>(std::min(width, ((region.left + region.width - 1) / block + 2) * block)) - left;
  if (columns < codec.output_width) jpeg_crop_scanline(&codec, &left, &columns);
  region.left = static_cast<int>(left);
  region.width = static_cast<int>(columns);
  return true;
}

/// Rows top..bottom of what was started.
bool read_rows(JpegSession& session, const Region& region, int channels, uint8_t* ink_row, RowSink& rows) {
  if (setjmp(session.on_error) != 0) return false;
  jpeg_decompress_struct& codec = session.codec;
  const auto top = static_cast<JDIMENSION>(region.top), bottom = top + static_cast<JDIMENSION>(region.height);
  if (top > 0) jpeg_skip_scanlines(&codec, top);
  while (codec.output_scanline < bottom) {
    uint8_t* const row = rows.next_row();
    uint8_t* target = ink_row != nullptr ? ink_row : row;
    jpeg_read_scanlines(&codec, &target, 1);
    if (ink_row != nullptr) convert_cmyk_row(ink_row, region.width, channels, row);
  }
  rows.end();
  // After the last row the end marker is due; what comes before it is a warning.
  if (bottom < codec.output_height) return true;
  if (session.entropy_taken_over && !session.entropy->hand_back(codec)) {
    leave_session(session, Failure::entropy_gave_up);
  }
  if (session.tolerated != Tolerated::other_end) jpeg_finish_decompress(&codec);
  return true;
}

bool fail_with(JpegSession& session, const std::string& reason) {
  session.failure = Failure::bad_image;
  std::snprintf(session.message, sizeof session.message, "%s", reason.c_str());
  return false;
}

/// The steps in order; false when one failed. A region of width 0 is the whole.
bool decode_in_session(JpegSession& session, const uint8_t* bytes, uint64_t size, int channels,
                       const DecodeLimits& limits, Region region, RowSink& rows) {
  if (!read_session_header(session, bytes, size, channels)) return false;
  if (region.width == 0) {
    region = {0, 0, static_cast<int>(session.codec.output_width), static_cast<int>(session.codec.output_height)};
  }
  const double megapixels = 1e-6 * session.codec.output_width * session.codec.output_height;
  const bool inside = region.left + region.width <= static_cast<int>(session.codec.output_width) &&
                      region.top + region.height <= static_cast<int>(session.codec.output_height);
  if (megapixels > limits.max_megapixels || !inside) return fail_with(session, "two headers that disagree");
  if (!start_region(session, region)) return false;
  rows.begin(region, channels);
  std::vector<uint8_t> ink_row;
  if (session.codec.out_color_space == JCS_CMYK) ink_row.resize(static_cast<size_t>(region.width) * 4);
  return read_rows(session, region, channels, ink_row.empty() ? nullptr : ink_row.data(), rows);
}

/// Frees what libjpeg holds, also when memory for pixels was not to be had.
class SessionEnd {
 public:
  explicit SessionEnd(JpegSession& session) : session_(session) {}
  ~SessionEnd() { jpeg_destroy_decompress(&session_.codec); }
  SessionEnd& operator=(SessionEnd&&) = delete;  // not copied, not moved

 private:
  JpegSession& session_;
};

/// One decode from beginning to end, with `entropy` or, where it is null, libjpeg alone.
Failure decode_once(JpegSession& session, EntropyDecoder* entropy, Tolerated tolerated, const uint8_t* bytes,
                    uint64_t size, int channels, const DecodeLimits& limits, const Region& region, RowSink& rows) {
  session = {};
  session.entropy = entropy;
  session.tolerated = tolerated;
  session.max_scans = limits.max_jpeg_scans;
  session.give_up_at =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.max_seconds));
  const SessionEnd end(session);
  const bool good = decode_in_session(session, bytes, size, channels, limits, region, rows);
  if (!good && session.errors.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();  // no fault of the image
  return good ? Failure::none : session.failure;
}

/// For the self-test of our stage, which must not start over with libjpeg's.
std::string decode_with_stage(const std::vector<uint8_t>& jpeg, Region& wanted, ImageBuffer& out, EntropyStage stage) {
  EntropyDecoder entropy;
  JpegSession session;
  RowsOfImage rows(out, wanted);
  const Failure failure = decode_once(session, stage == EntropyStage::own ? &entropy : nullptr, Tolerated::nothing,
                                      jpeg.data(), jpeg.size(), 3, {}, wanted, rows);
  wanted = rows.held();
  return failure == Failure::none ? "" : "not decoded";
}

EntropyStage chosen_stage() {
  static EntropyStageChoice choice(decode_with_stage);
  return choice.get();
}

/// Rows that nobody wants.
class NoRows : public RowSink {
 public:
  void begin(const Region& held, int channels) override {
    row_.resize(static_cast<size_t>(held.width) * static_cast<size_t>(channels));
  }
  uint8_t* next_row() override { return row_.data(); }
  void end() override {}

 private:
  std::vector<uint8_t> row_;
};

/// Whether what lies between the last block and the end marker was put there, and is not the rest of blocks that damage
/// has shortened: these end within a byte at random. Progressive and arithmetic codes cannot be distinguished.
bool is_put_before_end(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits, const Region& wanted) {
  EntropyDecoder entropy;
  JpegSession session;
  NoRows rows;
  decode_once(session, &entropy, Tolerated::nothing, bytes, size, 1, limits, wanted, rows);
  return !session.entropy_taken_over || entropy.ended_well();
}

/// How the last block ends, where the own stage reads the image to there.
struct BlocksEnd {
  bool is_known = false, is_well = false, is_in_ones = false, is_before_others = false;
  const uint8_t* behind = nullptr;  ///< the first byte that is not a part of them
};

BlocksEnd end_of_blocks(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits) {
  EntropyDecoder entropy;
  JpegSession session;
  NoRows rows;
  decode_once(session, &entropy, Tolerated::other_end, bytes, size, 1, limits, Region(), rows);
  return {session.entropy_taken_over, entropy.ended_well(), entropy.ended_in_ones(), entropy.ended_before_others(),
          entropy.behind()};
}

/// Whether nothing but the end marker is missing: Huffman codes of one scan end with the data.
bool lacks_end_alone(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits, const BlocksEnd& end) {
  JpegSession session;
  NoRows rows;
  const Failure failure = decode_once(session, nullptr, Tolerated::missing_end, bytes, size, 1, limits, Region(), rows);
  const jpeg_decompress_struct& codec = session.codec;
  if (failure != Failure::none || session.has_left_over || codec.progressive_mode || codec.arith_code ||
      codec.comps_in_scan != codec.num_components) {
    return false;
  }
  return !end.is_known || (end.is_well && end.is_before_others);
}

/// Whether all blocks are there and a run of one byte follows them in place of the end marker, as where a copy was
/// filled up with zeros. Behind any other bytes nothing shows that blocks were not read from those.
bool is_filled_up(const uint8_t* bytes, uint64_t size, const BlocksEnd& end) {
  return end.is_known && end.is_in_ones && end.is_before_others &&
         std::all_of(end.behind, bytes + size, [&](uint8_t byte) { return byte == *end.behind; });
}

/// How the image ends; `nothing` with an end marker, `damage` where it is cut short.
Tolerated end_of(const uint8_t* bytes, uint64_t size, const DecodeLimits& limits) {
  if (has_end_marker(bytes, size)) return Tolerated::nothing;
  const BlocksEnd end = end_of_blocks(bytes, size, limits);
  if (lacks_end_alone(bytes, size, limits, end)) return Tolerated::missing_end;
  return is_filled_up(bytes, size, end) ? Tolerated::other_end : Tolerated::damage;
}

/// For this thread; see take_repair().
thread_local std::string last_repair;

}  // namespace

std::string take_repair() { return std::exchange(last_repair, ""); }
void note_repair(const std::string& reason) { last_repair = reason; }

std::string decode_jpeg(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits,
                        const Region& wanted, RowSink& rows, EntropyStage stage) {
  const Tolerated end = end_of(bytes, size, limits);
  const bool is_whole = end != Tolerated::damage;
  constexpr const char* kCutShort = "JPEG: cut short: there is no end marker";
  if (!is_whole && !limits.repair) return kCutShort;
  if (stage == EntropyStage::automatic) stage = chosen_stage();
  thread_local EntropyDecoder own_entropy;  // keeps nothing but tables that come back in the next file
  JpegSession session;
  EntropyDecoder* const entropy = end == Tolerated::nothing && stage == EntropyStage::own ? &own_entropy : nullptr;
  const Tolerated tolerated = is_whole ? end : Tolerated::missing_end;
  Failure failure = decode_once(session, entropy, tolerated, bytes, size, channels, limits, wanted, rows);
  if (failure == Failure::entropy_gave_up) {
    failure = decode_once(session, nullptr, tolerated, bytes, size, channels, limits, wanted, rows);
  }
  if (failure == Failure::none && session.has_left_over && !limits.repair &&
      !is_put_before_end(bytes, size, limits, wanted)) {
    return "JPEG: Corrupt JPEG data: more of it than the image has";
  }
  if (limits.repair && (failure == Failure::bad_image || (failure == Failure::none && !is_whole))) {
    const std::string reason = is_whole ? std::string("JPEG: ") + session.message : kCutShort;
    failure = decode_once(session, nullptr, Tolerated::damage, bytes, size, channels, limits, wanted, rows);
    if (failure == Failure::none) note_repair(reason);
  }
  if (failure == Failure::none) return "";
  if (failure == Failure::too_slow) {
    throw core::Error(core::ErrorKind::data, core::format("JPEG: not decoded after {:g} seconds", limits.max_seconds),
                      "remove the file, or save it anew as a baseline JPEG of fewer pixels");
  }
  return std::string("JPEG: ") + session.message;
}

std::string decode_jpeg(const uint8_t* bytes, uint64_t size, int channels, const DecodeLimits& limits, Region& wanted,
                        ImageBuffer& out, EntropyStage stage) {
  RowsOfImage rows(out, wanted);
  std::string reason = decode_jpeg(bytes, size, channels, limits, wanted, rows, stage);
  wanted = rows.held();
  return reason;
}

}  // namespace stoker::data
