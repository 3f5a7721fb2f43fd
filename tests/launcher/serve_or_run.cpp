// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "launcher.h"

namespace stoker::launcher {
namespace {

using MainFunction = int (*)(int, char**);

constexpr int kIdleMilliseconds = 15 * 60 * 1000;  // a server that nobody ended ends itself

[[noreturn]] void become_program(MainFunction run, int connection, const LaunchRequest& request, int out, int err) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::chdir(request.directory.c_str()) != 0) ::_exit(126);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  for (const int file : {connection, out, err}) ::close(file);
  ::clearenv();
  for (const std::string& variable : request.environment) ::putenv(::strdup(variable.c_str()));
  std::vector<std::string> words = request.words;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int code = run(static_cast<int>(words.size()), arguments.data());
  std::fflush(nullptr);
  std::_Exit(code);
}

/// Starts what the connection asks for and stays until its end, or until nobody listens any more.
[[noreturn]] void attend(MainFunction run, int connection, const LaunchRequest& request, int out, int err) {
  ::signal(SIGCHLD, SIG_DFL);
  const pid_t pid = ::fork();
  if (pid == 0) become_program(run, connection, request, out, err);
  ::close(out);
  ::close(err);
  ::send(connection, &pid, sizeof pid, MSG_NOSIGNAL);
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  pollfd watched[2] = {{process, POLLIN, 0}, {connection, POLLIN, 0}};
  if (process >= 0) ::poll(watched, 2, -1);  // a kernel or a sandbox without it: the program ends by itself
  if (watched[1].revents != 0) ::kill(pid, SIGKILL);
  LaunchEnd end;
  ::wait4(pid, &end.status, 0, &end.usage);
  ::send(connection, &end, sizeof end, MSG_NOSIGNAL);
  ::_exit(0);
}

void serve(MainFunction run, int listening) {
  ::signal(SIGCHLD, SIG_IGN);
  for (;;) {
    pollfd watched = {listening, POLLIN, 0};
    if (::poll(&watched, 1, kIdleMilliseconds) == 0) return;
    const int connection = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    LaunchRequest request;
    int out = -1, err = -1;
    if (!receive_request(connection, request, out, err)) return;
    if (::fork() == 0) {
      ::close(listening);
      attend(run, connection, request, out, err);
    }
    for (const int file : {connection, out, err}) ::close(file);
  }
}

int start_server(MainFunction run, const char* path) {
  ::unlink(path);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const int listening = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  if (std::strlen(path) >= sizeof address.sun_path ||
      ::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening, 64) != 0) {
    std::printf("cannot listen at %s: each test starts the program itself\n", path);
    return 0;
  }
  if (::fork() != 0) return 0;  // stays in the session of ctest, with which the scheduler counts it
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {0, 1, 2}) ::dup2(nowhere, standard);
  serve(run, listening);
  ::unlink(path);
  return 0;
}

}  // namespace

int serve_or_run(int argc, char** argv, int (*run)(int, char**)) {
  if (argc == 3 && std::string(argv[1]) == "--serve") std::_Exit(start_server(run, argv[2]));
  return run(argc, argv);
}

}  // namespace stoker::launcher
