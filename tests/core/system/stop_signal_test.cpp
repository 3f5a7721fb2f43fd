// SPDX-License-Identifier: Apache-2.0
#include "core/system/stop_signal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace stoker::core {
namespace {

TEST(StopSignalTest, ARequestIsSeenNamedAndCleared) {
  EXPECT_FALSE(stop_requested());
  request_stop(SIGTERM);
  EXPECT_TRUE(stop_requested());
  EXPECT_EQ(stop_signal_name(), "TERM");
  EXPECT_THROW(throw_if_stopped(), StopRequested);
  request_stop(0);
  EXPECT_FALSE(stop_requested());
  EXPECT_NO_THROW(throw_if_stopped());
}

TEST(StopSignalTest, TermUsr1AndIntAskToStopAndUsr2AsksToSave) {
  install_stop_signals();
  for (const auto& [number, name] :
       {std::pair(SIGTERM, "TERM"), std::pair(SIGUSR1, "USR1"), std::pair(SIGINT, "INT")}) {
    ::raise(number);
    EXPECT_EQ(stop_signal_name(), name);
    request_stop(0);
  }
  EXPECT_FALSE(take_save_request());
  ::raise(SIGUSR2);
  EXPECT_FALSE(stop_requested());
  EXPECT_TRUE(take_save_request());
  EXPECT_FALSE(take_save_request()) << "a request is taken once";
}

TEST(StopSignalTest, ASecondInterruptWritesTheLastLineAndLeavesAtOnceWith130) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    install_stop_signals();
    ::raise(SIGINT);
    ::raise(SIGINT);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  char text[100] = "";
  ::close(ends[1]);
  EXPECT_GT(::read(ends[0], text, sizeof text - 1), 0);
  EXPECT_STREQ(text, "\ntrain: exit=130 reason=signal:INT\n");
  ::close(ends[0]);
}

TEST(StopSignalTest, AHeldSignalWaitsForItsHandler) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGTERM, SIG_DFL);
    hold_stop_signals();
    ::raise(SIGTERM);  // would kill
    install_stop_signals();
    ::_exit(stop_signal_name() == "TERM" ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(StopSignalTest, ABrokenPipeDoesNotKill) {
  install_stop_signals();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  ::close(ends[1]);
}

}  // namespace
}  // namespace stoker::core
