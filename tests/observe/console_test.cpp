// SPDX-License-Identifier: Apache-2.0
#include "observe/console.h"

#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

TEST(ConsoleTest, CutsAtCharactersNotBytes) {
  EXPECT_EQ(cut_to_columns("abcdef", 3), "abc");
  EXPECT_EQ(cut_to_columns("abc", 3), "abc");
  EXPECT_EQ(cut_to_columns("a\xc3\xa9z", 2), "a\xc3\xa9");
}

TEST(ConsoleTest, WithoutATerminalThereIsNoLiveLineAndNoControlCharacter) {
  ::testing::internal::CaptureStdout();
  {
    Console console(/*quiet=*/false);
    EXPECT_FALSE(console.is_live());
    console.show_live("live");
    core::log_info("plain {}", 1);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "plain 1\n");
}

TEST(ConsoleTest, WarningsGoToStderrWithTheirLevel) {
  ::testing::internal::CaptureStderr();
  {
    Console console(false);
    core::log_warning("careful");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: careful\n");
}

}  // namespace
}  // namespace stoker::observe
