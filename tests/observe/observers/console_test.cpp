// SPDX-License-Identifier: Apache-2.0
#include "observe/observers/console.h"

#include <gtest/gtest.h>

namespace stoker::observe {
namespace {

TEST(ConsoleTest, WithoutATerminalThereIsNoLiveLineAndNoControlCharacter) {
  ::testing::internal::CaptureStdout();
  {
    Console console(/*quiet=*/false);
    EXPECT_FALSE(console.is_live());
    console.show_live({{"live", 0}});
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
