// SPDX-License-Identifier: Apache-2.0
// Starts the program for tests without loading its libraries each time, which takes 0.3 s of a CPU: a server has them
// loaded and forks for each start. tests/cli/launcher_main.cpp is the server; ctest starts and ends it as a fixture.
// What runs in the child is what main() of `train` runs. Without a server, and for a start with an environment or
// limits of its own, tests start `train` itself.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace stoker::cli {

/// Where the server listens, in the environment of tests.
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

}  // namespace stoker::cli
