// SPDX-License-Identifier: Apache-2.0
#include "made_shards.h"

#include <algorithm>
#include <filesystem>

#include "core/format.h"
#include "core/hash.h"
#include "core/system/file.h"
#include "data/container/tar_reader.h"
#include "data/open_datasets.h"

namespace stoker::data {
namespace {

Bytes image_of(int number) {
  const int width = 20 + number * 7 % 31, height = 20 + number * 11 % 29;
  Bytes pixels = pattern_pixels(width, height, 3);
  for (uint8_t& value : pixels) value = static_cast<uint8_t>(value + 37 * number);
  JpegRecipe recipe;
  recipe.progressive = number % 5 == 0;
  return number % 3 == 2 ? png_of(pixels, width, height, 3) : jpeg_of(pixels, width, height, recipe);
}

}  // namespace

void write_loose_images(const TempFolder& folder) {
  const std::vector<std::string> odd = {"a.b.jpg",          "same.jpg",  "same.png",        "no_extension",
                                        "caf\xC3\xA9.JPEG", "wrong.png", "deep/er/100%.jpg"};
  for (int i = 0; i < 7; ++i) folder.write("train/cat/" + odd[static_cast<size_t>(i)], image_of(i));
  for (int i = 7; i < 23; ++i) {
    folder.write(core::format("train/{}/{:03}.{}", i % 2 == 0 ? "cat" : "dog", i, i % 3 == 2 ? "png" : "jpg"),
                 image_of(i));
  }
  for (int i = 0; i < 6; ++i) {
    folder.write(core::format("val/{}/{}.jpg", i % 2 == 0 ? "cat" : "dog", i), image_of(30 + i));
  }
}

config::DataOptions options_for(const std::string& data_dir) {
  config::DataOptions options;
  options.data_dir = data_dir;
  return options;
}

std::shared_ptr<const Source> train_of(const std::string& data_dir) {
  return open_split(options_for(data_dir), "train");
}

PackSettings pack_settings(const std::string& directory, int64_t shard_images, int64_t threads) {
  PackSettings settings;
  settings.directory = directory;
  settings.shard_images = shard_images;
  settings.num_threads = threads;
  return settings;
}

PackReport pack_folder(const std::string& data_dir, const PackSettings& settings) {
  std::vector<std::string> notes;
  std::vector<SplitToPack> splits;
  for (auto& [name, source] : open_whole_splits(options_for(data_dir), {}, notes)) splits.push_back({name, source});
  return pack(splits, settings, [](const PackProgress&) {});
}

std::string archive_of(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string archive;
  for (const auto& [name, content] : members) {
    archive += tar_header_text(name, content.size()) + content;
    archive.append(tar_padding(content.size()), '\0');
  }
  return archive + std::string(2 * kTarBlock, '\0');
}

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::pair<std::string, std::string>> files_of(const std::string& directory) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name != ".lock") files.emplace_back(name, core::read_file(entry.path().string(), 1 << 24));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string content_digest(const Source& source) {
  core::Hasher hasher;
  std::vector<uint8_t> buffer;
  for (int64_t i = 0; i < source.size(); ++i) {
    SampleContent content;
    hasher.add(core::format("{} {} [{}] ", source.relative_name(i), source.label(i), source.read(i, buffer, content)));
    hasher.add(content.bytes, content.size);
  }
  return hasher.hex();
}

}  // namespace stoker::data
