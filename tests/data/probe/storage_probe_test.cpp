// SPDX-License-Identifier: Apache-2.0
#include "data/probe/storage_probe.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/temporary_directory.h"

namespace stoker::data {
namespace {

TEST(StorageProbeTest, ReadsASampleOfTheFilesThatAreThere) {
  const fixtures::TemporaryDirectory folder;
  for (int i = 0; i < 100; ++i) folder.write("class/" + std::to_string(i), std::string(10'000, 'x'));
  folder.write("empty", "");
  const StorageSpeed speed = probe_storage(folder.path(), 60);
  EXPECT_EQ(speed.files_seen, 101);
  EXPECT_GE(speed.files_read, 63);
  EXPECT_EQ(speed.bytes_read, 10'000 * speed.files_read);
  EXPECT_GT(speed.bytes_per_second, 0);
  EXPECT_GT(speed.cached_bytes_per_second, 0);
  EXPECT_GE(speed.slow_open_seconds, speed.open_seconds);
  EXPECT_GT(speed.cached_share, 0.5) << "just written";
}

TEST(StorageProbeTest, AFolderWithoutFilesIsMissingInput) {
  const fixtures::TemporaryDirectory folder;
  for (const std::string& path : {folder.path(), folder / "nowhere"}) {
    try {
      probe_storage(path, 1);
      FAIL() << path;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.kind(), core::ErrorKind::no_input);
    }
  }
}

}  // namespace
}  // namespace stoker::data
