// SPDX-License-Identifier: Apache-2.0
// Folders and lists of multi-band TIFF files: the files decide about the channels, and all must agree.
#include "data/bands/band_source.h"

#include <gtest/gtest.h>

#include "core/format.h"
#include "data/open_datasets.h"
#include "made_tiff.h"

namespace stoker::data {
namespace {

class BandSourceTest : public ::testing::Test {
 protected:
  BandSourceTest() { options_.data_dir = folder_.path(); }

  void write_split(const std::string& split, const TiffRecipe& recipe) const {
    for (const std::string name : {"field/0.tif", "field/1.tif", "forest/0.TIFF", "forest/1.tif"}) {
      folder_.write(split + "/" + name, band_tiff(recipe, name[6] + name[0]));
    }
  }
  static std::string problem_of(const Source& source, int64_t index) {
    std::vector<uint8_t> buffer;
    SampleContent content;
    return source.read(index, buffer, content);
  }

  TempFolder folder_;
  config::DataOptions options_;
};

TEST_F(BandSourceTest, TheFilesDecideAboutTheChannels) {
  for (const int bands : {4, 6, 13}) {
    TiffRecipe recipe;
    recipe.bands = bands;
    recipe.bits = bands == 13 ? 16 : 8;
    write_split("train", recipe);
    write_split("val", recipe);
    const Datasets data = open_datasets(options_);
    const SampleShape shape = data.train->fixed_shape();
    EXPECT_EQ(shape.channels, bands);
    EXPECT_EQ(shape.height, recipe.height);
    EXPECT_EQ(shape.width, recipe.width);
    EXPECT_EQ(shape.element, bands == 13 ? Element::float32 : Element::uint8);
    EXPECT_EQ(data.train->label(2), 1);
    EXPECT_EQ(data.train->name(2), folder_ / "train/forest/0.TIFF");
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(problem_of(*data.train, i), "");
    EXPECT_FALSE(data.val->fixed_shape() != shape);
  }
}

TEST_F(BandSourceTest, TheOddOneIsABadSampleThatIsNamed) {
  TiffRecipe recipe;
  write_split("train", recipe);
  write_split("val", recipe);
  recipe.bands = 7;
  folder_.write("train/field/1.tif", band_tiff(recipe));
  folder_.write("train/forest/1.tif", png_of({1, 2, 3}, 1, 1, 3));
  const Datasets data = open_datasets(options_);
  EXPECT_EQ(problem_of(*data.train, 0), "");
  EXPECT_EQ(problem_of(*data.train, 1), "is 4 x 5 x 7 of uint8, but 4 x 5 x 6 of uint8 is expected");
  EXPECT_EQ(problem_of(*data.train, 3), "is no TIFF of many bands, but 4 x 5 x 6 of uint8 is expected");
}

TEST_F(BandSourceTest, ListsOfACsvWithClassesAndWithNumbers) {
  write_split("train", {});
  for (const auto& [task, header, value] : {std::tuple{config::TaskKind::multiclass, "path,label\n", "a"},
                                            std::tuple{config::TaskKind::regression, "path,x\n", "0.5"}}) {
    const std::string rows =
        core::format("{0}train/field/0.tif,{1}\ntrain/field/1.tif,{2}\n", header, value, value[0] == 'a' ? "b" : "1");
    folder_.write("train.csv", rows);
    folder_.write("val.csv", rows);
    options_.task = task;
    options_.dataset = config::DatasetType::csv;
    EXPECT_EQ(open_datasets(options_).train->fixed_shape().channels, 6);
  }
}

TEST_F(BandSourceTest, PicturesStayPictures) {
  TiffRecipe recipe;
  recipe.bands = 3, recipe.colour_kind = 2, recipe.extra = -1;
  write_split("train", recipe);
  write_split("val", recipe);
  EXPECT_EQ(open_datasets(options_).train->fixed_shape().height, 0);
  recipe.bands = 4;
  write_split("train", recipe);
  EXPECT_EQ(open_datasets(options_).train->fixed_shape().height, 0) << "colours with alpha";
}

TEST_F(BandSourceTest, OneFileOfBandsAmongPicturesIsTheOddOne) {
  TiffRecipe recipe;
  recipe.bands = 3, recipe.colour_kind = 2, recipe.extra = -1;
  write_split("train", recipe);
  write_split("val", recipe);
  folder_.write("train/field/0.tif", band_tiff({}));
  EXPECT_EQ(open_datasets(options_).train->fixed_shape().height, 0);
}

TEST_F(BandSourceTest, BandsThatAreNotReadEndItWithTheReason) {
  TiffRecipe recipe;
  write_split("train", recipe);
  write_split("val", recipe);
  for (const std::string name : {"field/0.tif", "field/1.tif", "forest/0.TIFF", "forest/1.tif"}) {
    Bytes file = band_tiff(recipe);
    const size_t directory = file[4] | file[5] << 8;
    const size_t place = directory + 2 + 2 * 12 + 8;  // of the third tag, BitsPerSample
    const size_t at = file[place] | file[place + 1] << 8;
    for (size_t i = 0; i < 6; ++i) file[at + 2 * i] = 32;
    folder_.write("train/" + name, file);
  }
  const core::Error error = error_of([&] { open_datasets(options_); });
  EXPECT_EQ(error.kind(), core::ErrorKind::data);
  EXPECT_EQ(std::string(error.what()), folder_ / "train/field/0.tif: TIFF with 32 bits is not read, only 8 or 16");
}

}  // namespace
}  // namespace stoker::data
