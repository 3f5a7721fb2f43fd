// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of the corpus: small good files of every kind that the readers know. What fuzzing adds to
// them lies beside them. Usage: fuzz_write_seeds tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "data/shard/shard_index.h"
#include "tests/data/made_data.h"

namespace {

using namespace stoker::data;

void write(const std::string& folder, const std::string& name, const Bytes& content) {
  std::filesystem::create_directories(folder);
  std::ofstream file(folder + "/" + name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) std::fprintf(stderr, "cannot write %s/%s\n", folder.c_str(), name.c_str());
}

void write_jpegs(const std::string& folder) {
  constexpr int kWidth = 35, kHeight = 21;
  const auto add = [&](const std::string& name, const JpegRecipe& recipe) {
    write(folder, name, jpeg_of(pattern_pixels(kWidth, kHeight, recipe.channels), kWidth, kHeight, recipe));
  };
  constexpr int kQuality = 40;
  add("gray", {1, false, false, kQuality});
  add("gray_progressive", {1, true, false, kQuality});
  add("444", {3, false, false, kQuality, 1, 1});
  add("422", {3, false, false, kQuality, 2, 1});
  add("440", {3, false, false, kQuality, 1, 2});
  add("420", {3, false, false, kQuality, 2, 2});
  add("411", {3, false, false, kQuality, 4, 1});
  add("420_restarts", {3, false, false, kQuality, 2, 2, 1});
  add("420_progressive", {3, true, false, kQuality, 2, 2});
  add("cmyk", {4, false, false, kQuality});
  add("cmyk_adobe", {4, false, true, kQuality});
  for (const int orientation : {2, 3, 6}) {
    write(folder, "exif_" + std::to_string(orientation),
          jpeg_with_exif(jpeg_of(pattern_pixels(kWidth, kHeight, 1), kWidth, kHeight, {1, false, false, kQuality}),
                         orientation));
  }
  write(folder, "one_pixel", jpeg_of(pattern_pixels(1, 1, 3), 1, 1, {3, false, false, kQuality}));
}

void write_other_images(const std::string& folder) {
  const Bytes gray = pattern_pixels(7, 5, 1), rgb = pattern_pixels(7, 5, 3), rgba = pattern_pixels(7, 5, 4);
  write(folder, "gray_png", png_of(gray, 7, 5, 1));
  write(folder, "rgb_png", png_of(rgb, 7, 5, 3));
  write(folder, "rgba_png", png_of(rgba, 7, 5, 4));
  write(folder, "deep_png", png16_of({0, 257, 128, 129, 65535, 32896}, 2, 1, 3));
  write(folder, "palette_png", palette_png(2, 1, {10, 20, 30, 200, 150, 100}, {0, 0x40}));
  write(folder, "exif_png", png_with_chunk(png_of(rgb, 7, 5, 3), "eXIf", exif_with_orientation(6)));
  write(folder, "gray_bmp", bmp_of(flat_pixels(7, 5, {9}), 7, 5, 1));
  write(folder, "rgb_bmp", bmp_of(rgb, 7, 5, 3));
  write(folder, "alpha_bmp", bmp32_of(2, 1, {1, 2, 3, 4, 5, 6, 7, 8}, true));
  write(folder, "opaque_bmp", bmp32_of(2, 1, {1, 2, 3, 4, 5, 6, 7, 8}, false));
  const Bytes rgb_webp = webp_of(rgb, 7, 5, 3), rgba_webp = webp_of(rgba, 7, 5, 4);
  write(folder, "rgb_webp", rgb_webp);
  write(folder, "rgba_webp", rgba_webp);
  write(folder, "animated_webp", animated_webp(9, 9, {{2, 2, 7, 5, rgba_webp}}));
}

void write_idx(const std::string& folder) {
  // The images file, its length in two bytes in front, then the labels file.
  const auto pair = [&](const std::string& name, const Bytes& images, const Bytes& labels) {
    Bytes both = {static_cast<uint8_t>(images.size()), static_cast<uint8_t>(images.size() >> 8)};
    both.insert(both.end(), images.begin(), images.end());
    both.insert(both.end(), labels.begin(), labels.end());
    write(folder, name, both);
  };
  const Bytes images = idx_images(3, 2, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Bytes labels = idx_labels(3, {0, 1, 2});
  pair("plain", images, labels);
  pair("gzipped", gzipped(images), gzipped(labels));
  pair("mixed", images, gzipped(labels));
}

void write_shard_indexes(const std::string& folder) {
  ShardIndex index;
  const auto add = [&](const std::string& name) {
    const std::string text = shard_index_text(index);
    write(folder, name, Bytes(text.begin(), text.end()));
  };
  index.shard_bytes = 10240;
  add("empty");
  index.add(512, 300, 0, "cat/001.jpg");
  index.add(1536, 513, 999'999, "dog/a.b.jpg");
  index.add(4096, 0, -1, "x");
  index.first_source = 7;
  index.source_count = 4;
  add("foreign");
  index.shard_digest = index.pack_identity = "0123456789abcdef0123456789abcdef";
  add("ours");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_write_seeds FOLDER\n");
    return 64;
  }
  const std::string corpus = argv[1];
  write_jpegs(corpus + "/jpeg_gate");
  write_other_images(corpus + "/image_gate");
  write_idx(corpus + "/idx");
  write_shard_indexes(corpus + "/shard_index");
  return 0;
}
