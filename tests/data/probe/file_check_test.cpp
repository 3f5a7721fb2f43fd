// SPDX-License-Identifier: Apache-2.0
#include "data/probe/file_check.h"

#include <gtest/gtest.h>

#include "data/open_datasets.h"
#include "made_data.h"

namespace stoker::data {
namespace {

class FileCheckTest : public testing::Test {
 protected:
  FileCheckTest() {
    for (int i = 0; i < 20; ++i) folder_.write("whole/" + std::to_string(100 + i) + ".png", image_);
  }
  FileCheck check(int64_t at_most = 0) const {
    return check_files(*open_loose_images(folder_.path(), true), {DecodeLimits(), /*threads=*/3, at_most});
  }

  const Bytes image_ = png_of(pattern_pixels(9, 7, 3), 9, 7, 3);
  const TempFolder folder_;
};

TEST_F(FileCheckTest, WholeFilesAreCountedAndNoneIsBad) {
  const FileCheck found = check();
  EXPECT_EQ(found.samples, 20);
  EXPECT_EQ(found.looked_at, 20);
  EXPECT_EQ(found.bad, 0);
  EXPECT_EQ(file_check_text(found, "samples"), "all 20 samples read, none bad");
}

TEST_F(FileCheckTest, EmptyCutAndForeignFilesAreNamedWithTheirReasons) {
  folder_.write("whole/a-cut.png", Bytes(image_.begin(), image_.begin() + 50));
  folder_.write("whole/b-empty.jpg", Bytes());
  folder_.write("whole/c-text.jpg", std::string("<html>no image</html>"));
  const FileCheck found = check();
  EXPECT_EQ(found.bad, 3);
  ASSERT_EQ(found.first_bad.size(), 3u);
  EXPECT_NE(found.first_bad[0].find("a-cut.png: "), std::string::npos);
  EXPECT_NE(found.first_bad[1].find("b-empty.jpg: empty file"), std::string::npos);
  EXPECT_NE(found.first_bad[2].find("c-text.jpg: HTML"), std::string::npos) << found.first_bad[2];
}

TEST_F(FileCheckTest, AFileWithoutAByteIsFoundWhereOnlySomeAreRead) {
  folder_.write("whole/z-empty.jpg", Bytes());
  const FileCheck found = check(/*at_most=*/2);
  EXPECT_EQ(found.looked_at, 2);
  EXPECT_EQ(found.bad, 1);
  EXPECT_EQ(file_check_text(found, "training samples"), "2 of 21 training samples read, 1 bad");
}

TEST_F(FileCheckTest, OnlyTheFirstFewAreListed) {
  for (int i = 0; i < 9; ++i) folder_.write("bad/" + std::to_string(i) + ".png", std::string("no"));
  const FileCheck found = check();
  EXPECT_EQ(found.bad, 9);
  EXPECT_EQ(found.first_bad.size(), kShownBad);
}

}  // namespace
}  // namespace stoker::data
