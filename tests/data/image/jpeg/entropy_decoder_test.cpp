// SPDX-License-Identifier: Apache-2.0
// Our Huffman stage against libjpeg's own: the same coefficients where it continues, the same verdict where it
// gives up.
#include "data/image/jpeg/entropy_decoder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "data/image/decode.h"
#include "data/image/jpeg/jpeg_decode.h"
#include "made_data.h"

namespace stoker::data {
namespace {

constexpr int kWidth = 131, kHeight = 77;

/// Noise: long codes, many coefficients, many bytes FF.
Bytes noise_pixels(int channels) {
  Bytes pixels(static_cast<size_t>(kWidth * kHeight * channels));
  uint32_t state = 1;
  for (uint8_t& value : pixels) value = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return pixels;
}

Bytes made_jpeg(const JpegRecipe& recipe, bool noise) {
  const int channels = recipe.channels;
  return jpeg_of(noise ? noise_pixels(channels) : pattern_pixels(kWidth, kHeight, channels), kWidth, kHeight, recipe);
}

/// Sequential JPEGs of every layout of blocks, sharp and coarse, with codes of the standard and of their own.
std::vector<JpegRecipe> sequential_recipes() {
  std::vector<JpegRecipe> recipes;
  for (const int quality : {3, 50, 100}) {
    for (const auto& [columns, rows] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}}) {
      JpegRecipe recipe;
      recipe.quality = quality;
      recipe.luma_columns = columns;
      recipe.luma_rows = rows;
      recipe.optimized = columns == rows;
      recipes.push_back(recipe);
      recipe.restart_rows = 1;
      recipes.push_back(recipe);
    }
    JpegRecipe other;
    other.quality = quality;
    other.restart_blocks = 3;
    for (const int channels : {1, 4}) {
      other.channels = channels;
      recipes.push_back(other);
    }
    other.ycck = true;
    recipes.push_back(other);
  }
  return recipes;
}

/// A file that libjpeg is reading.
class OpenJpeg {
 public:
  explicit OpenJpeg(Bytes file) : file_(std::move(file)) {
    codec.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, file_.data(), file_.size());
    jpeg_read_header(&codec, TRUE);
  }
  ~OpenJpeg() { jpeg_destroy_decompress(&codec); }
  OpenJpeg& operator=(OpenJpeg&&) = delete;  // not copied, not moved

  jpeg_decompress_struct codec{};

 private:
  Bytes file_;
  jpeg_error_mgr errors_{};
};

/// Where block `block` of MCU (column, row) lies in its component; of a scan of one component an MCU is a
/// block.
struct BlockPlace {
  BlockPlace(const jpeg_decompress_struct& codec, int block, JDIMENSION mcu_column, JDIMENSION mcu_row) {
    component = codec.MCU_membership[block];
    int within = 0;
    for (int i = 0; i < block; ++i) within += codec.MCU_membership[i] == component ? 1 : 0;
    const jpeg_component_info& info = codec.comp_info[component];
    const int columns = codec.comps_in_scan == 1 ? 1 : info.h_samp_factor;
    const int rows = codec.comps_in_scan == 1 ? 1 : info.v_samp_factor;
    column = mcu_column * static_cast<JDIMENSION>(columns) + static_cast<JDIMENSION>(within % columns);
    row = mcu_row * static_cast<JDIMENSION>(rows) + static_cast<JDIMENSION>(within / columns);
    inside = column < info.width_in_blocks && row < info.height_in_blocks;
  }
  int component = 0;
  JDIMENSION column = 0, row = 0;
  bool inside = false;
};

/// Reads all of a file with ours and compares each block with what libjpeg reads.
void expect_blocks_of_libjpeg(const Bytes& file, EntropyDecoder& decoder) {
  OpenJpeg ours(file), theirs(file);
  jvirt_barray_ptr* const expected = jpeg_read_coefficients(&theirs.codec);
  jpeg_start_decompress(&ours.codec);
  ASSERT_TRUE(decoder.start(ours.codec));
  JBLOCK blocks[D_MAX_BLOCKS_IN_MCU];
  JBLOCKROW rows[D_MAX_BLOCKS_IN_MCU];
  for (int i = 0; i < D_MAX_BLOCKS_IN_MCU; ++i) rows[i] = &blocks[i];
  for (JDIMENSION y = 0; y < ours.codec.MCU_rows_in_scan; ++y) {
    for (JDIMENSION x = 0; x < ours.codec.MCUs_per_row; ++x) {
      std::memset(blocks, 0, sizeof blocks);
      ASSERT_TRUE(decoder.read_mcu(ours.codec, rows)) << "MCU " << x << "," << y;
      for (int i = 0; i < ours.codec.blocks_in_MCU; ++i) {
        const BlockPlace place(ours.codec, i, x, y);
        if (!place.inside) continue;
        const auto codec = reinterpret_cast<j_common_ptr>(&theirs.codec);
        JBLOCKARRAY row = theirs.codec.mem->access_virt_barray(codec, expected[place.component], place.row, 1, FALSE);
        ASSERT_EQ(std::memcmp(row[0][place.column], blocks[i], sizeof(JBLOCK)), 0)
            << "block " << i << " of MCU " << x << "," << y;
      }
    }
  }
  ASSERT_TRUE(decoder.hand_back(ours.codec));
  EXPECT_EQ(ours.codec.src->next_input_byte[1], JPEG_EOI);
}

TEST(EntropyDecoderTest, ReadsTheCoefficientsThatLibjpegReads) {
  EntropyDecoder decoder;  // one for all: tables are kept and pushed out
  for (const bool noise : {false, true}) {
    for (const JpegRecipe& recipe : sequential_recipes()) {
      SCOPED_TRACE(testing::Message() << recipe.channels << " channels, " << recipe.luma_columns << "x"
                                      << recipe.luma_rows << ", quality " << recipe.quality << ", noise " << noise);
      expect_blocks_of_libjpeg(made_jpeg(recipe, noise), decoder);
    }
  }
}

TEST(EntropyDecoderTest, LeavesProgressiveFilesToLibjpeg) {
  OpenJpeg file(made_jpeg({3, /*progressive=*/true}, false));
  jpeg_start_decompress(&file.codec);
  EXPECT_FALSE(EntropyDecoder().start(file.codec));
}

TEST(EntropyDecoderTest, GivesUpWhereDataEnds) {
  const Bytes whole = made_jpeg({}, true);
  Bytes cut(whole.begin(), whole.begin() + static_cast<int64_t>(whole.size() / 2));
  cut.insert(cut.end(), {0xFF, JPEG_EOI});
  OpenJpeg file(cut);
  jpeg_start_decompress(&file.codec);
  EntropyDecoder decoder;
  ASSERT_TRUE(decoder.start(file.codec));
  const JDIMENSION all = file.codec.MCU_rows_in_scan * file.codec.MCUs_per_row;
  JDIMENSION read = 0;
  while (read < all && decoder.read_mcu(file.codec, nullptr)) ++read;
  EXPECT_GT(read, all / 3);
  EXPECT_LT(read, 2 * all / 3);
}

struct Verdict {
  std::string reason;
  Bytes pixels;
};

Verdict verdict_of(const Bytes& file, EntropyStage stage) {
  ImageHeader header;
  DecodeLimits limits;
  limits.max_megapixels = 1;
  Verdict verdict;
  verdict.reason = read_header(file.data(), file.size(), limits, header);
  if (!verdict.reason.empty()) return verdict;
  Region whole{0, 0, header.width, header.height};
  ImageBuffer image;
  verdict.reason = decode_jpeg(file.data(), file.size(), 3, limits, whole, image, stage);
  if (verdict.reason.empty()) {
    verdict.pixels.assign(image.pixels.begin(), image.pixels.begin() + int64_t{3} * whole.width * whole.height);
  }
  return verdict;
}

TEST(EntropyDecoderTest, DamagedFilesMeetTheSameVerdict) {
  JpegRecipe restarts;
  restarts.restart_blocks = 5;
  int good = 0, bad = 0;
  for (const Bytes& whole : {made_jpeg({}, false), made_jpeg({1}, true), made_jpeg(restarts, false)}) {
    uint32_t state = 7;
    for (int i = 0; i < 300; ++i) {
      Bytes damaged = whole;
      state = state * 1664525 + 1013904223;
      const size_t at = 2 + (state >> 8) % (whole.size() - 4);
      state = state * 1664525 + 1013904223;
      damaged[at] ^= static_cast<uint8_t>(1 << (state >> 29));
      const Verdict ours = verdict_of(damaged, EntropyStage::own), theirs = verdict_of(damaged, EntropyStage::libjpeg);
      ASSERT_EQ(ours.reason, theirs.reason) << "byte " << at;
      ASSERT_EQ(ours.pixels, theirs.pixels) << "byte " << at;
      ++(ours.reason.empty() ? good : bad);
    }
  }
  EXPECT_GT(good, 50);
  EXPECT_GT(bad, 50);
}

TEST(EntropyDecoderTest, BytesThatWereLaidBehindTheLastBlockChangeNothing) {
  const Bytes whole = made_jpeg({}, false);
  Bytes file = whole;
  file.insert(file.end() - 2, 20, 0x12);
  for (const EntropyStage stage : {EntropyStage::own, EntropyStage::libjpeg}) {
    EXPECT_EQ(verdict_of(file, stage).reason, "");
    EXPECT_EQ(verdict_of(file, stage).pixels, verdict_of(whole, stage).pixels);
  }
}

TEST(HuffmanTableTest, RefusesCountsThatMakeNoCode) {
  HuffmanCode code;
  code.counts[1] = 3;  // of one bit there are two
  EXPECT_FALSE(HuffmanTable().build(code));
  code.counts[1] = 1;
  EXPECT_TRUE(HuffmanTable().build(code));
}

TEST(HuffmanTableTest, FindsCodesAndValuesOfEveryLength) {
  // One code of each length: 0, 10, 110, ... of which the i-th stands for a run of i and 10 bits.
  HuffmanCode code;
  for (size_t length = 1; length <= 16; ++length) {
    code.counts[length] = 1;
    code.symbols[length - 1] = static_cast<uint8_t>((length - 1) << 4 | 10);
  }
  HuffmanTable table;
  ASSERT_TRUE(table.build(code));
  for (int length = 1; length <= 16; ++length) {
    for (const uint32_t bits : {0u, 1u, 511u, 512u, 1023u}) {
      const uint64_t ones = (uint64_t{1} << length) - 2;
      const uint64_t buffer = ones << (64 - length) | uint64_t{bits} << (54 - length);
      uint32_t entry = table.look(buffer);
      if ((entry & HuffmanTable::kSpecial) != 0) entry = table.find(buffer);
      EXPECT_EQ(HuffmanTable::length_of(entry), length + 10);
      EXPECT_EQ(HuffmanTable::advance_of(entry), length);
      EXPECT_EQ(HuffmanTable::value_of(entry), bits >= 512 ? static_cast<int>(bits) : static_cast<int>(bits) - 1023);
    }
  }
  EXPECT_EQ(table.find(~uint64_t{0}), HuffmanTable::kBad);
}

}  // namespace
}  // namespace stoker::data
