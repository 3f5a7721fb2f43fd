// SPDX-License-Identifier: Apache-2.0
#include "core/open_retrying.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/temporary_directory.h"

namespace stoker::core {
namespace {

std::atomic<int> signals_seen{0};

/// Lets SIGUSR1 interrupt calls of the system, as SIGTERM does in a run.
class InterruptingSignal {
 public:
  InterruptingSignal() {
    struct sigaction action = {};
    action.sa_handler = [](int) { ++signals_seen; };  // without SA_RESTART
    ::sigaction(SIGUSR1, &action, &before_);
  }
  ~InterruptingSignal() { ::sigaction(SIGUSR1, &before_, nullptr); }

 private:
  struct sigaction before_ = {};
};

TEST(OpenRetryingTest, ASignalDoesNotEndAnOpenThatWaits) {
  const fixtures::TemporaryDirectory folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const InterruptingSignal interrupting;
  signals_seen = 0;
  std::atomic<bool> has_ended{false};
  int opened = -1;
  std::thread reader([&] {
    opened = open_retrying(path.c_str(), O_RDONLY);  // waits for somebody who writes
    has_ended = true;
  });
  while (signals_seen < 20 && !has_ended) {
    ::pthread_kill(reader.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_FALSE(has_ended) << "interrupted, and not begun again";
  const int writer = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  reader.join();
  EXPECT_GE(opened, 0);
  ::close(opened);
  ::close(writer);
}

}  // namespace
}  // namespace stoker::core
