// SPDX-License-Identifier: Apache-2.0
#include "data/loader/loader_impl.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace stoker::data {
namespace {

TEST(BatchBufferTest, PageLockingThatADriverRefusesIsNoLackOfMemory) {
  if (at::globalContext().hasCUDA()) GTEST_SKIP() << "this LibTorch may lock pages";
  BatchBuffer buffer;
  try {
    buffer.allocate(4, square_shape(8, 3), 0, /*pinned=*/true);
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::os) << error.what();
    EXPECT_NE(std::string(error.hint()).find("--no-pin-memory"), std::string::npos);
  }
}

TEST(BatchBufferTest, MemoryThatThereIsNotIsALackOfMemory) {
  BatchBuffer buffer;
  try {
    buffer.allocate(int64_t{1} << 40, square_shape(1000, 3), 0, /*pinned=*/false);
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.kind(), core::ErrorKind::out_of_memory) << error.what();
    EXPECT_NE(std::string(error.what()).find("for a batch of images"), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("use a smaller --batch-size"), std::string::npos) << error.hint();
  }
}

}  // namespace
}  // namespace stoker::data
