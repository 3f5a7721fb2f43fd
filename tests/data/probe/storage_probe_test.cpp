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
  EXPECT_GE(speed.cached_share, 0);
  EXPECT_LE(speed.cached_share, 1);
}

TEST(StorageProbeTest, AFileThatIsADataSetIsReadItself) {
  const fixtures::TemporaryDirectory folder;
  const StorageSpeed speed = probe_storage(folder.write("one.h5", std::string(10'000, 'x')), 60);
  EXPECT_EQ(speed.files_seen, 1);
  EXPECT_EQ(speed.bytes_read, 10'000);
}

TEST(StorageProbeTest, ReadingsBecomeRatesAndShares) {
  std::vector<FileReading> readings(20, {1000, 600, 50, /*open=*/0.001, /*first=*/0.004, /*second=*/0.0005});
  readings[3].open_seconds = 0.002;
  readings[7].open_seconds = 0.5;
  readings[7].first_seconds = 0.924;
  const StorageSpeed speed = speed_of(readings);
  EXPECT_EQ(speed.files_read, 20);
  EXPECT_EQ(speed.bytes_read, 20'000);
  EXPECT_DOUBLE_EQ(speed.cached_share, 0.6);
  EXPECT_TRUE(speed.dropped) << "a twentieth is still in memory";
  EXPECT_EQ(speed.open_seconds, 0.001);
  EXPECT_EQ(speed.slow_open_seconds, 0.5);
  EXPECT_NEAR(speed.bytes_per_second, 20'000, 1e-6) << "19 x 4 ms and 924 ms";
  EXPECT_NEAR(speed.cached_bytes_per_second, 2'000'000, 1e-3);
}

TEST(StorageProbeTest, FilesThatStayInMemoryWereNotRead) {
  EXPECT_FALSE(speed_of({{1000, 1000, 100, 0, 0.001, 0.001}}).dropped);
  EXPECT_TRUE(speed_of({{1000, 1000, 99, 0, 0.001, 0.001}}).dropped);
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
