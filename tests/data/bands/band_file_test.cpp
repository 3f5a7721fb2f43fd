// SPDX-License-Identifier: Apache-2.0
// multi-band TIFF files: their numbers, whatever the way they are stored, and the errors of damaged ones.
#include "data/bands/band_source.h"

#include <gtest/gtest.h>

#include <cstring>

#include "made_tiff.h"

namespace stoker::data {
namespace {

SampleShape shape_of(const TiffRecipe& recipe) {
  SampleShape shape;
  shape.height = recipe.height, shape.width = recipe.width, shape.channels = recipe.bands;
  shape.element = recipe.bits == 8 ? Element::uint8 : Element::float32;
  return shape;
}

std::string problem_of(const Bytes& file, const SampleShape& shape) {
  BandScratch scratch;
  Bytes out(static_cast<size_t>(shape.bytes()));
  return decode_bands(file.data(), file.size(), shape, scratch, out.data());
}

void expect_numbers(const TiffRecipe& recipe) {
  const Bytes file = band_tiff(recipe);
  SampleShape shape;
  std::string problem;
  ASSERT_TRUE(read_band_header(file.data(), file.size(), shape, problem)) << problem;
  ASSERT_TRUE(shape == shape_of(recipe)) << band_shape_text(shape);
  BandScratch scratch;
  Bytes out(static_cast<size_t>(shape.bytes()));
  ASSERT_EQ(decode_bands(file.data(), file.size(), shape, scratch, out.data()), "");
  size_t at = 0;
  for (int y = 0; y < recipe.height; ++y) {
    for (int x = 0; x < recipe.width; ++x) {
      for (int band = 0; band < recipe.bands; ++band, ++at) {
        float value = out[std::min(at, out.size() - 1)];
        if (recipe.bits == 16) std::memcpy(&value, out.data() + 4 * at, sizeof value);
        ASSERT_EQ(value, band_value(recipe, x, y, band)) << x << " " << y << " " << band;
      }
    }
  }
}

TEST(BandFileTest, NumbersAreThoseOfTheFileHoweverTheyAreStored) {
  for (const int bits : {8, 16}) {
    for (const bool planar : {false, true}) {
      for (const bool deflated : {false, true}) {
        for (const bool big_endian : {false, true}) {
          for (const int tile : {0, 16}) {
            for (const int bands : {2, 4, 6, 13}) {
              TiffRecipe recipe{19, 21, bands, bits, planar, deflated, big_endian};
              recipe.tile = tile;
              SCOPED_TRACE(testing::Message() << bits << " bits, planar " << planar << ", deflated " << deflated
                                              << ", big endian " << big_endian << ", tile " << tile << ", " << bands);
              expect_numbers(recipe);
            }
          }
        }
      }
    }
  }
}

TEST(BandFileTest, FourChannelsAreBandsUnlessTheyAreColoursWithAlpha) {
  const auto are_bands = [](int colour_kind, int extra) {
    TiffRecipe recipe;
    recipe.bands = 4, recipe.colour_kind = colour_kind, recipe.extra = extra;
    const Bytes file = band_tiff(recipe);
    SampleShape shape;
    std::string problem;
    const bool yes = read_band_header(file.data(), file.size(), shape, problem);
    EXPECT_EQ(problem, "");
    return yes;
  };
  EXPECT_TRUE(are_bands(1, 0));
  EXPECT_TRUE(are_bands(1, -1));
  EXPECT_TRUE(are_bands(2, 0)) << "red, green, blue and near infrared";
  EXPECT_FALSE(are_bands(2, 1));
  EXPECT_FALSE(are_bands(2, 2));
  EXPECT_FALSE(are_bands(2, -1));
}

TEST(BandFileTest, AnotherShapeIsNamed) {
  TiffRecipe recipe;
  const Bytes six = band_tiff(recipe);
  recipe.bands = 13;
  recipe.bits = 16;
  EXPECT_EQ(problem_of(six, shape_of(recipe)), "is 4 x 5 x 6 of uint8, but 4 x 5 x 13 of float32 is expected");
  EXPECT_EQ(problem_of(png_of({1}, 1, 1, 1), shape_of(recipe)),
            "is no TIFF of many bands, but 4 x 5 x 13 of float32 is expected");
}

TEST(BandFileTest, CutFilesAreBadAndNeverMore) {
  for (const bool deflated : {false, true}) {
    TiffRecipe recipe{30, 20, 6, 16, false, deflated};
    const Bytes whole = band_tiff(recipe);
    for (size_t length = 0; length + 4 < whole.size(); length += 1 + length / 40) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_NE(problem_of(cut, shape_of(recipe)), "") << length;
    }
  }
}

TEST(BandFileTest, ADamagedStripOfAGoodDirectoryIsNamed) {
  for (const bool planar : {false, true}) {
    TiffRecipe recipe{9, 7, 6, 16, planar, true};
    Bytes file = band_tiff(recipe);
    file[8] = 0xFF;  // where the first strip begins
    EXPECT_EQ(problem_of(file, shape_of(recipe)).rfind("damaged TIFF: ", 0), 0u) << problem_of(file, shape_of(recipe));
  }
}

TEST(BandFileTest, AChangedByteIsReadOrRefusedAndNeverMore) {
  TiffRecipe recipe{9, 7, 6, 16, false, true};
  const Bytes whole = band_tiff(recipe);
  int64_t refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const uint8_t value : {0x00, 0x7F, 0xFF}) {
      Bytes changed = whole;
      changed[at] = value;
      refused += problem_of(changed, shape_of(recipe)).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 50);
}

TEST(BandFileTest, AHeaderThatPromisesTooMuchIsRefusedBeforeMemoryIsTaken) {
  TiffRecipe recipe{9, 7, 6, 16, false, true};
  Bytes file = band_tiff(recipe);
  // The directory's first two tags: width and height, longs.
  const size_t directory = file[4] | file[5] << 8 | file[6] << 16;
  for (const size_t tag : {size_t{0}, size_t{1}}) file[directory + 2 + 12 * tag + 9] = 0x40;  // 16384 and more
  SampleShape shape;
  std::string problem;
  EXPECT_FALSE(read_band_header(file.data(), file.size(), shape, problem));
  EXPECT_NE(problem.find("too much for a sample"), std::string::npos) << problem;
  file[directory + 2 + 9] = 0x10;
  EXPECT_FALSE(read_band_header(file.data(), file.size(), shape, problem));
  EXPECT_NE(problem.find("TIFF cut short: its header gives 807.4 MB in a file of "), std::string::npos) << problem;
}

}  // namespace
}  // namespace stoker::data
