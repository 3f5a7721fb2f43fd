// SPDX-License-Identifier: Apache-2.0
#include "core/crash/crash_file.h"

#include <gtest/gtest.h>

namespace stoker::core {
namespace {

TEST(CrashFileTest, TheNewestIsTakenOnce) {
  prepare_crash_file("runs/a/status.json", "{1");
  prepare_crash_file("runs/a/status.json", "{2");
  const CrashFile* const file = take_crash_file();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->path, "runs/a/status.json");
  EXPECT_EQ(file->begin, "{2");
  EXPECT_EQ(file->temporary.rfind("runs/a/status.json.tmp-", 0), 0u) << "in the same folder, as other writers name it";
  EXPECT_EQ(take_crash_file(), nullptr);
  delete file;
}

TEST(CrashFileTest, WhatWasDroppedIsNotTaken) {
  prepare_crash_file("status.json", "{");
  drop_crash_file();
  EXPECT_EQ(take_crash_file(), nullptr);
}

}  // namespace
}  // namespace stoker::core
