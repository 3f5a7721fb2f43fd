// SPDX-License-Identifier: Apache-2.0
#include "tiny_data.h"

#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

// After <cstdio>: it uses FILE without declaring it.
#include <jpeglib.h>

namespace stoker::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSide = 8;

std::string big32(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

std::string png_chunk(const std::string& name_and_content) {
  const auto* bytes = reinterpret_cast<const Bytef*>(name_and_content.data());
  return big32(static_cast<uint32_t>(name_and_content.size() - 4)) + name_and_content +
         big32(static_cast<uint32_t>(::crc32(0, bytes, static_cast<uInt>(name_and_content.size()))));
}

std::string png_head(uint32_t width, uint32_t height) {
  const std::string gray_8_bit("\x08\x00\x00\x00\x00", 5);
  return "\x89PNG\r\n\x1A\n" + png_chunk("IHDR" + big32(width) + big32(height) + gray_8_bit);
}

/// zlib's stream, with the header that `window_bits` asks for.
std::string deflated(const std::string& content, int window_bits) {
  z_stream stream{};
  ::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string packed(::deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

}  // namespace

std::string idx_images(uint32_t count, uint32_t magic, uint8_t brightness) {
  std::string file = big32(magic) + big32(count) + big32(kSide) + big32(kSide);
  for (uint32_t i = 0; i < count; ++i)
    file += std::string(kSide * kSide, static_cast<char>(brightness + 20 * (i % 10)));
  return file;
}

std::string idx_labels(uint32_t count, uint32_t magic, uint8_t first_label) {
  std::string file = big32(magic) + big32(count);
  for (uint32_t i = 0; i < count; ++i) file += static_cast<char>(i == 0 ? first_label : i % 10);
  return file;
}

void write_idx(const Workplace& work, uint32_t train_images) {
  work.write("data/train-images-idx3-ubyte", idx_images(train_images));
  work.write("data/train-labels-idx1-ubyte", idx_labels(train_images));
  work.write("data/t10k-images-idx3-ubyte", idx_images(20, 0x803, 10));  // no image of the training split
  work.write("data/t10k-labels-idx1-ubyte", idx_labels(20));
}

std::string png_of(uint32_t width, uint32_t height, uint8_t gray) {
  std::string rows;
  for (uint32_t y = 0; y < height; ++y) rows += '\0' + std::string(width, static_cast<char>(gray));
  return png_head(width, height) + png_chunk("IDAT" + deflated(rows, 15)) + png_chunk("IEND");
}

std::string png_bomb(uint32_t width, uint32_t height) {
  return png_head(width, height) + png_chunk("IDAT" + deflated("", 15)) + png_chunk("IEND");
}

std::string jpeg_of(int width, int height, uint8_t gray) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = ::jpeg_std_error(&errors);
  ::jpeg_create_compress(&encoder);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  ::jpeg_mem_dest(&encoder, &bytes, &size);
  encoder.image_width = static_cast<JDIMENSION>(width);
  encoder.image_height = static_cast<JDIMENSION>(height);
  encoder.input_components = 1;
  encoder.in_color_space = JCS_GRAYSCALE;
  ::jpeg_set_defaults(&encoder);
  ::jpeg_start_compress(&encoder, TRUE);
  for (int y = 0; y < height; ++y) {
    std::vector<unsigned char> row(static_cast<size_t>(width));
    for (size_t x = 0; x < row.size(); ++x) row[x] = static_cast<unsigned char>(gray + 31 * x * static_cast<size_t>(y));
    JSAMPROW pointer = row.data();
    ::jpeg_write_scanlines(&encoder, &pointer, 1);
  }
  ::jpeg_finish_compress(&encoder);
  ::jpeg_destroy_compress(&encoder);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return file;
}

void write_folders(const Workplace& work) {
  for (const std::string split : {"train", "val"}) {
    for (int i = 0; i < 8; ++i) {
      const std::string kind = i < 4 ? "cat/" : "dog/";
      work.write("data/" + split + "/" + kind + std::to_string(i % 4) + ".png",
                 png_of(kSide, kSide, static_cast<uint8_t>(30 * i)));
    }
  }
}

void write_csv(const Workplace& work) {
  std::string table = "path,label\n";
  for (int i = 0; i < 8; ++i) {
    const std::string name = "images/" + std::to_string(i) + ".png";
    work.write("data/" + name, png_of(kSide, kSide, static_cast<uint8_t>(30 * i)));
    table += name + "," + std::to_string(i % 2) + "\n";
  }
  work.write("data/train.csv", table);
  work.write("data/val.csv", table);
}

std::string gzipped(const std::string& content) { return deflated(content, 15 + 16); }

void append(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::app) << content;
}

std::string content_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void copy_folder(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

std::string listing_of(const std::string& folder) {
  std::set<std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    std::string line = entry.path().string();
    if (entry.is_symlink()) {
      line += " -> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      line += " " + std::to_string(entry.file_size()) + " " +
              std::to_string(std::hash<std::string>()(content_of_file(entry.path().string())));
    }
    lines.insert(line + "\n");
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

Words train_words(const Words& more) {
  Words words = {"--data-dir", "data", "--model",       "small_cnn", "--width",      "8",  "--epochs", "1",
                 "--threads",  "1",    "--num-workers", "1",         "--batch-size", "16", "--device", "cpu",
                 "--run-dir",  "run",  "--no-amp"};  // nothing to measure
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace stoker::cli
