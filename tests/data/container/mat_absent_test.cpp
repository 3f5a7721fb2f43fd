// SPDX-License-Identifier: Apache-2.0
// Head pose data with MAT-files where the program was built without matio.
#include <gtest/gtest.h>

#include "data/open_datasets.h"
#include "made_data.h"

namespace stoker::data {
namespace {

TEST(MatAbsentTest, TheProgramSaysThatItCannotReadThem) {
  const TempFolder folder;
  folder.write("train/a.jpg", Bytes(10));
  folder.write("train/a.mat", Bytes(10));
  config::DataOptions options;
  options.data_dir = folder.path();
  options.task = config::TaskKind::head_pose;
  options.dataset = config::DatasetType::w300lp;
  const core::Error error = error_of([&] { open_datasets(options); });
  EXPECT_EQ(error.kind(), core::ErrorKind::unavailable);
  EXPECT_EQ(error.what(), "cannot read " + folder / "train/a.mat: this program was built without matio");
  EXPECT_NE(error.hint().find("libmatio-dev"), std::string::npos);
}

}  // namespace
}  // namespace stoker::data
