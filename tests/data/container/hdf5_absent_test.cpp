// SPDX-License-Identifier: Apache-2.0
// HDF5 files where the program was built without the library.
#include <gtest/gtest.h>

#include "data/open_datasets.h"
#include "made_data.h"

namespace stoker::data {
namespace {

TEST(Hdf5AbsentTest, TheProgramSaysThatItCannotReadThem) {
  const TempFolder folder;
  folder.write("train.h5", Bytes(10));
  config::DataOptions options;
  options.data_dir = folder.path();
  options.dataset = config::DatasetType::hdf5;
  const core::Error error = error_of([&] { open_datasets(options); });
  EXPECT_EQ(error.kind(), core::ErrorKind::unavailable);
  EXPECT_EQ(error.what(), "cannot read " + folder / "train.h5: this program was built without HDF5");
  EXPECT_NE(error.hint().find("libhdf5-dev"), std::string::npos);
}

}  // namespace
}  // namespace stoker::data
