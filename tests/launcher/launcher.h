// SPDX-License-Identifier: Apache-2.0
// Starts a program for tests without loading LibTorch each time, which takes 0.3 s of a CPU: a server, which is the
// program itself, has it loaded and forks for each start. ctest starts and ends servers as fixtures. What runs in the
// child is the program's own main function. Without a server, and for a start with limits of its own, the program
// itself is started.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace stoker::launcher {

/// Where the server of `train` listens, in the environment of tests.
inline constexpr const char* kLauncherVariable = "STOKER_TEST_LAUNCHER";

struct LaunchRequest {
  std::string directory;  ///< absolute
  std::vector<std::string> words, environment;
};

/// What the server says at the end of what it started.
struct LaunchEnd {
  int status = 0;  ///< as of wait4()
  struct rusage usage = {};
};

/// A connection to the server that listens at `path`; -1: none does.
int connect_to_launcher(const std::string& path);
/// Asks for a start with these two for its standard output and error; returns the process id, -1 where that failed. The
/// process is killed when the connection is closed; a LaunchEnd comes over it at the end.
pid_t launch_over(int connection, const LaunchRequest& request, int out, int err);
/// The server's side: what a connection asks for; false: nothing that can be read.
bool receive_request(int connection, LaunchRequest& request, int& out, int& err);
/// Asks the server to end.
void end_launcher(const std::string& path);

/// The main function of a program that is a server, too: PROGRAM --serve PATH listens at PATH in the background, and
/// returns once it does. Other words are `run`'s. In the child of a server, `run` is called with the words and
/// environment of the request; what libraries read from the environment as they are loaded (OMP_NUM_THREADS, say) is
/// the server's. Destructors of libraries are not run.
int serve_or_run(int argc, char** argv, int (*run)(int argc, char** argv));

}  // namespace stoker::launcher
