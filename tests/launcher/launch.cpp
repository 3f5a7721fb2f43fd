// SPDX-License-Identifier: Apache-2.0
// launch PATH PROGRAM [WORD...]: PROGRAM with these words, started by the server that listens at PATH; without one,
// PROGRAM itself. Ends as it does: with its exit code, or by its signal. launch --end PATH: ends the server.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>

#include "launcher.h"

int main(int argc, char** argv) {
  using namespace stoker::launcher;
  if (argc < 3) return 64;
  if (std::string(argv[1]) == "--end") {
    end_launcher(argv[2]);
    return 0;
  }
  const int connection = connect_to_launcher(argv[1]);
  LaunchRequest request;
  request.directory = std::filesystem::current_path().string();
  request.words.assign(argv + 2, argv + argc);
  for (char** variable = environ; *variable != nullptr; ++variable) request.environment.emplace_back(*variable);
  if (connection < 0 || launch_over(connection, request, 1, 2) < 0) {
    ::execv(argv[2], argv + 2);
    std::perror(argv[2]);
    return 127;
  }
  LaunchEnd end;
  ssize_t got;
  do {
    got = ::recv(connection, &end, sizeof end, 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof end) {
    std::fprintf(stderr, "the server that started %s is gone\n", argv[2]);
    return 1;
  }
  if (WIFEXITED(end.status)) return WEXITSTATUS(end.status);
  ::kill(::getpid(), WTERMSIG(end.status));
  return 1;
}
