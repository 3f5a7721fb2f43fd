// SPDX-License-Identifier: Apache-2.0
#include "core/system/worker_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

namespace stoker::core {
namespace {

constexpr int kNobody = 65534, kNoPrivilegeToDrop = 99;

/// The exit code of require_threads(count) in a process that may have one thread.
int ending_without_threads(int64_t count) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);                                                                  // a hang ends the child with a signal
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(kNoPrivilegeToDrop);  // root has no limit
    const struct rlimit one = {1, 1};
    ::setrlimit(RLIMIT_NPROC, &one);
    try {
      require_threads(count);
    } catch (const Error& error) {
      ::_exit(exit_code(error.kind()));
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ThreadsTest, AreMadeWhereTheyCanBeHad) {
  EXPECT_NO_THROW(require_threads(0));
  EXPECT_NO_THROW(require_threads(12));
}

TEST(ThreadsTest, ThatCannotBeHadAreAMatterOfTheSystem) {
  const int ending = ending_without_threads(4);
  if (ending == kNoPrivilegeToDrop) GTEST_SKIP() << "no other user can be chosen here";
  EXPECT_EQ(ending, 71);
}

}  // namespace
}  // namespace stoker::core
