// SPDX-License-Identifier: Apache-2.0
// Regions of real photographs against whole decodes by libjpeg alone. Needs a folder of JPEGs, which the
// project does not bring: STOKER_JPEG_FOLDER=DIR build/release/tests/data/data_files_tests
// --gtest_filter='RegionFilesTest.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/rng.h"
#include "data/image/decode.h"
#include "data/image/jpeg/jpeg_decode.h"
#include "made_data.h"

namespace stoker::data {
namespace {

constexpr int kBoxes = 20;

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// A box of any size and place, drawn evenly.
Region drawn_box(core::Rng& rng, const ImageHeader& header) {
  const auto drawn = [&](int most) { return static_cast<int>(rng.below(static_cast<uint64_t>(most))); };
  Region box;
  box.width = 1 + drawn(header.width);
  box.height = 1 + drawn(header.height);
  box.left = drawn(header.width - box.width + 1);
  box.top = drawn(header.height - box.height + 1);
  return box;
}

void expect_part_of(const ImageBuffer& whole, const Region& box, const Region& got, const ImageBuffer& part) {
  const int64_t row_bytes = int64_t{3} * box.width;
  for (int y = box.top; y < box.top + box.height; ++y) {
    const auto expected = whole.pixels.begin() + 3 * (int64_t{y} * whole.width + box.left);
    const auto found = part.pixels.begin() + 3 * (int64_t{y - got.top} * got.width + box.left - got.left);
    ASSERT_TRUE(std::equal(expected, expected + row_bytes, found))
        << "row " << y << " of " << box.width << "x" << box.height << " at " << box.left << "," << box.top;
  }
}

TEST(RegionFilesTest, EveryBoxIsBitForBitAPartOfTheWhole) {
  const char* const folder = std::getenv("STOKER_JPEG_FOLDER");
  if (folder == nullptr) GTEST_SKIP() << "STOKER_JPEG_FOLDER names no folder of JPEGs";
  const std::vector<std::string> paths = files_of(folder);
  int64_t boxes = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    SCOPED_TRACE(paths[i]);
    std::ifstream stream(paths[i], std::ios::binary);
    const Bytes file{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    ImageHeader header;
    ASSERT_EQ(read_header(file.data(), file.size(), {}, header), "");
    if (header.format != ImageFormat::jpeg || header.orientation != 1) continue;
    ImageBuffer whole, part;
    Region all{0, 0, header.width, header.height};
    ASSERT_EQ(decode_jpeg(file.data(), file.size(), 3, {}, all, whole, EntropyStage::libjpeg), "");
    core::Rng rng(1, core::RngPurpose::augment, 0, i);
    for (int k = 0; k < kBoxes; ++k, ++boxes) {
      const Region box = drawn_box(rng, header);
      Region got = box;
      ASSERT_EQ(decode_region(file.data(), file.size(), 3, {}, header, got, part), "");
      ASSERT_NO_FATAL_FAILURE(expect_part_of(whole, box, got, part));
    }
  }
  ASSERT_GT(boxes, 0);
  std::cout << boxes << " boxes of " << paths.size() << " files\n";
}

}  // namespace
}  // namespace stoker::data
