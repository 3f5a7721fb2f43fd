// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "core/error.h"
#include "core/system/file.h"
#include "tests/temporary_directory.h"

namespace stoker::core {
namespace {

/// Log files stay open until the process ends, so each test runs in a child process. Returns its exit code and what it
/// wrote to standard error.
template <typename Body>
std::pair<int, std::string> in_a_child(const fixtures::TemporaryDirectory& folder, Body body) {
  const std::string path = folder / "stderr";
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);  // a hang ends the child with a signal
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(fd, STDERR_FILENO);
    ::dup2(fd, STDOUT_FILENO);
    try {
      body();
    } catch (const Error& error) {
      ::dprintf(STDERR_FILENO, "%s\n", error.what());
      ::_exit(exit_code(error.kind()));
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(path, 1 << 20)};
}

TEST(LogFileTest, APipeThatNobodyReadsIsRefusedAndDoesNotHang) {
  const fixtures::TemporaryDirectory folder;
  const std::string pipe = folder / "train.log";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto [code, text] = in_a_child(folder, [&] { open_log_file(pipe); });
  EXPECT_EQ(code, 73);
  EXPECT_NE(text.find("train.log: it is a pipe that nobody reads"), std::string::npos) << text;
}

TEST(LogFileTest, AFullDiskIsOneWarningInOurOwnWords) {
  const fixtures::TemporaryDirectory folder;
  const auto [code, text] = in_a_child(folder, [&] {
    open_log_file("/dev/full");
    log_info("first");
    log_info("second");
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(text.find("LOG ERROR"), std::string::npos) << text;
  EXPECT_NE(text.find("warning: log lines are lost: "), std::string::npos) << text;
  EXPECT_EQ(text.find("log lines are lost"), text.rfind("log lines are lost")) << text;
  EXPECT_NE(text.find("second"), std::string::npos) << text;
}

TEST(LogFileTest, LinesGoToTheFileWithTimeAndLevel) {
  const fixtures::TemporaryDirectory folder;
  in_a_child(folder, [&] {
    open_log_file(folder / "log");
    log_warning("careful");
    flush_log();
  });
  const std::string text = read_file(folder / "log", 1 << 20);
  EXPECT_NE(text.find("Z warning careful\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace stoker::core
