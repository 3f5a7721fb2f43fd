// SPDX-License-Identifier: Apache-2.0
#include "made_data.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

// After <cstdio>: it uses FILE without declaring it.
#include <jpeglib.h>

namespace stoker::data {
namespace {

void append_big32(Bytes& bytes, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(value >> shift));
}

void append_little(Bytes& bytes, uint32_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void append_text(Bytes& bytes, const std::string& text) { bytes.insert(bytes.end(), text.begin(), text.end()); }

void append_bytes(Bytes& bytes, const Bytes& more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

Bytes png_chunk(const std::string& name, const Bytes& content) {
  Bytes named(name.begin(), name.end());
  append_bytes(named, content);
  Bytes chunk;
  append_big32(chunk, static_cast<uint32_t>(content.size()));
  append_bytes(chunk, named);
  append_big32(chunk, static_cast<uint32_t>(::crc32(0, named.data(), static_cast<uInt>(named.size()))));
  return chunk;
}

/// RGB(A) to OpenCV's BGR(A).
template <typename Value>
std::vector<Value> swapped(std::vector<Value> pixels, int channels) {
  if (channels >= 3) {
    for (size_t i = 0; i < pixels.size(); i += static_cast<size_t>(channels)) std::swap(pixels[i], pixels[i + 2]);
  }
  return pixels;
}

template <typename Value>
Bytes encoded(const std::string& extension, const std::vector<Value>& pixels, int width, int height, int channels,
              const std::vector<int>& settings = {}) {
  std::vector<Value> stored = swapped(pixels, channels);
  const int depth = sizeof(Value) == 2 ? CV_16U : CV_8U;
  Bytes file;
  cv::imencode(extension, cv::Mat(height, width, CV_MAKETYPE(depth, channels), stored.data()), file, settings);
  return file;
}

}  // namespace

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "stoker_data_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "cannot create " << pattern;
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::write(const std::string& name, const Bytes& content) const {
  return write(name, std::string(content.begin(), content.end()));
}

std::string TempFolder::write(const std::string& name, const std::string& content) const {
  const std::filesystem::path path = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path.string();
}

std::string TempFolder::make_folder(const std::string& name) const {
  std::filesystem::create_directories(std::filesystem::path(path_) / name);
  return path_ + "/" + name;
}

Bytes pattern_pixels(int width, int height, int channels) {
  Bytes pixels;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<uint8_t>(x * 7 + y * 13 + c * 29 + x * y % 11 * 5 + x * x / 3));
      }
    }
  }
  return pixels;
}

uint32_t byte_digest(const uint8_t* bytes, size_t count) {
  uint32_t digest = 0;
  for (size_t i = 0; i < count; ++i) digest = digest * 31 + bytes[i];
  return digest;
}

Bytes png_of(const Bytes& pixels, int width, int height, int channels) {
  return encoded(".png", pixels, width, height, channels);
}
Bytes png16_of(const std::vector<uint16_t>& pixels, int width, int height, int channels) {
  return encoded(".png", pixels, width, height, channels);
}
Bytes bmp_of(const Bytes& pixels, int width, int height, int channels) {
  return encoded(".bmp", pixels, width, height, channels);
}
Bytes webp_of(const Bytes& pixels, int width, int height, int channels) {
  return encoded(".webp", pixels, width, height, channels, {cv::IMWRITE_WEBP_QUALITY, 101});  // over 100: lossless
}

Bytes jpeg_of(const Bytes& pixels, int width, int height, const JpegRecipe& recipe) {
  jpeg_compress_struct codec{};
  jpeg_error_mgr errors{};
  codec.err = jpeg_std_error(&errors);
  jpeg_create_compress(&codec);
  unsigned char* file = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&codec, &file, &size);
  codec.image_width = static_cast<JDIMENSION>(width);
  codec.image_height = static_cast<JDIMENSION>(height);
  codec.input_components = recipe.channels;
  codec.in_color_space = recipe.channels == 1 ? JCS_GRAYSCALE : recipe.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, recipe.quality, TRUE);
  if (recipe.channels == 4) codec.write_Adobe_marker = recipe.adobe_marker ? TRUE : FALSE;
  if (recipe.channels == 3) {
    codec.comp_info[0].h_samp_factor = recipe.luma_columns;
    codec.comp_info[0].v_samp_factor = recipe.luma_rows;
  }
  if (recipe.ycck) jpeg_set_colorspace(&codec, JCS_YCCK);
  codec.optimize_coding = recipe.optimized ? TRUE : FALSE;
  codec.restart_in_rows = recipe.restart_rows;
  codec.restart_interval = static_cast<unsigned>(recipe.restart_blocks);
  if (recipe.progressive) jpeg_simple_progression(&codec);
  jpeg_start_compress(&codec, TRUE);
  while (codec.next_scanline < codec.image_height) {
    JSAMPROW row = const_cast<uint8_t*>(pixels.data()) +
                   static_cast<size_t>(codec.next_scanline) * static_cast<size_t>(width * recipe.channels);
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  Bytes bytes(file, file + size);
  ::free(file);
  return bytes;
}

Bytes exif_with_orientation(int orientation) {
  return {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 0x01, 3, 0, 1, 0, 0, 0, static_cast<uint8_t>(orientation),
          0,   0,   0,  0, 0, 0, 0};
}

Bytes jpeg_with_exif(const Bytes& jpeg, int orientation) {
  const Bytes exif = exif_with_orientation(orientation);
  Bytes segment = {0xFF, 0xE1, 0, static_cast<uint8_t>(exif.size() + 8), 'E', 'x', 'i', 'f', 0, 0};
  segment.insert(segment.end(), exif.begin(), exif.end());
  Bytes file = jpeg;
  file.insert(file.begin() + 2, segment.begin(), segment.end());
  return file;
}

Bytes png_with_chunk(const Bytes& png, const std::string& name, const Bytes& content) {
  const Bytes chunk = png_chunk(name, content);
  Bytes file = png;
  file.insert(file.begin() + 33, chunk.begin(), chunk.end());
  return file;
}

Bytes palette_png(uint32_t width, uint32_t height, const Bytes& palette, const Bytes& rows) {
  Bytes header;
  append_big32(header, width);
  append_big32(header, height);
  append_bytes(header, {1, 3, 0, 0, 0});  // 1 bit, palette
  Bytes packed(compressBound(rows.size()));
  uLongf size = packed.size();
  ::compress(packed.data(), &size, rows.data(), rows.size());
  packed.resize(size);
  Bytes file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  append_bytes(file, png_chunk("IHDR", header));
  append_bytes(file, png_chunk("PLTE", palette));
  append_bytes(file, png_chunk("IDAT", packed));
  append_bytes(file, png_chunk("IEND", {}));
  return file;
}

Bytes bmp32_of(uint32_t width, uint32_t height, const Bytes& pixels, bool alpha_mask) {
  const uint32_t dib_size = alpha_mask ? 108 : 40, offset = 14 + dib_size, bit_fields = 3;
  Bytes file = {'B', 'M'};
  for (const uint32_t value : {offset + static_cast<uint32_t>(pixels.size()), 0u, offset, dib_size, width, height}) {
    append_little(file, value, 4);
  }
  append_little(file, 1, 2);
  append_little(file, 32, 2);
  append_little(file, alpha_mask ? bit_fields : 0, 4);
  for (int i = 0; i < 5; ++i) append_little(file, 0, 4);
  if (alpha_mask) {
    for (const uint32_t mask : {0xFF0000u, 0xFF00u, 0xFFu, 0xFF000000u}) append_little(file, mask, 4);
  }
  file.resize(offset);
  append_bytes(file, pixels);
  return file;
}

Bytes animated_webp(int width, int height, const std::vector<StillFrame>& frames) {
  const auto number = [](int value) { return static_cast<uint32_t>(value); };
  Bytes body;
  append_text(body, "WEBPVP8X");
  append_little(body, 10, 4);
  append_little(body, 0x02, 4);  // animated
  append_little(body, number(width - 1), 3);
  append_little(body, number(height - 1), 3);
  append_text(body, "ANIM");
  append_little(body, 6, 4);
  append_little(body, 0xFFFFFFFF, 4);
  append_little(body, 0, 2);
  for (const StillFrame& frame : frames) {
    const Bytes chunks(frame.webp.begin() + 12, frame.webp.end());
    append_text(body, "ANMF");
    append_little(body, number(16 + static_cast<int>(chunks.size())), 4);
    append_little(body, number(frame.left / 2), 3);
    append_little(body, number(frame.top / 2), 3);
    append_little(body, number(frame.width - 1), 3);
    append_little(body, number(frame.height - 1), 3);
    append_little(body, 100, 3);
    body.push_back(0);
    append_bytes(body, chunks);
  }
  Bytes file;
  append_text(file, "RIFF");
  append_little(file, static_cast<uint32_t>(body.size()), 4);
  append_bytes(file, body);
  return file;
}

Bytes idx_images(uint32_t count, uint32_t height, uint32_t width, const Bytes& pixels, uint32_t magic) {
  Bytes file;
  for (const uint32_t number : {magic, count, height, width}) append_big32(file, number);
  file.insert(file.end(), pixels.begin(), pixels.end());
  return file;
}

Bytes idx_labels(uint32_t count, const Bytes& labels, uint32_t magic) {
  Bytes file;
  for (const uint32_t number : {magic, count}) append_big32(file, number);
  file.insert(file.end(), labels.begin(), labels.end());
  return file;
}

Bytes gzipped(const Bytes& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);  // + 16: with gzip's header
  Bytes out(deflateBound(&stream, content.size()) + 32);
  stream.next_in = const_cast<uint8_t*>(content.data());
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Bytes flat_pixels(int width, int height, const Bytes& colour) {
  Bytes pixels;
  for (int i = 0; i < width * height; ++i) pixels.insert(pixels.end(), colour.begin(), colour.end());
  return pixels;
}

core::Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const core::Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return core::Error(core::ErrorKind::bug, "");
}

}  // namespace stoker::data
