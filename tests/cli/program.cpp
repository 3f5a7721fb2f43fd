// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>
#include <tuple>

namespace stoker::cli {
namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds_of(const struct timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// The content of a memory file; the offset that the program writes at is not moved.
std::string content_of(int fd) {
  std::string text;
  char block[1 << 14];
  for (;;) {
    const ssize_t got = ::pread(fd, block, sizeof block, static_cast<off_t>(text.size()));
    if (got <= 0) return text;
    text.append(block, static_cast<size_t>(got));
  }
}

/// In the child: connects `target` (1 or 2) as `stream` requires; `capture` is a memory file, or a terminal.
void connect(Stream stream, int capture, int target) {
  if (stream == Stream::captured || stream == Stream::terminal) {
    ::dup2(capture, target);
  } else if (stream == Stream::closed) {
    ::close(target);
  } else if (stream == Stream::full) {
    ::dup2(::open("/dev/full", O_WRONLY | O_CLOEXEC), target);
  } else {
    int ends[2];
    if (::pipe(ends) != 0) ::_exit(kCannotStart);
    ::close(ends[0]);  // nobody reads
    ::dup2(ends[1], target);
    ::close(ends[1]);
  }
}

/// In the child: a mount that no other process sees, and that goes away with this one.
void mount_small_disk(const std::string& directory) {
  if (directory.empty()) return;
  const bool as_root = ::geteuid() == 0;
  if (::unshare(CLONE_NEWNS | (as_root ? 0 : CLONE_NEWUSER)) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", directory.c_str(), "tmpfs", 0, "size=128k") != 0) {
    ::_exit(kCannotStart);
  }
}

void drop_privileges() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(kCannotStart);
}

void limit_processes(int64_t count) {
  if (count < 0) return;
  const struct rlimit limit = {static_cast<rlim_t>(count), static_cast<rlim_t>(count)};
  ::setrlimit(RLIMIT_NPROC, &limit);
}

void limit_files(int64_t bytes) {
  const struct rlimit any_core = {RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_CORE, &any_core);
  if (bytes < 0) return;
  const struct rlimit limit = {static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

/// Both ends of a new terminal: ours and the program's.
std::pair<int, int> open_terminal() {
  const int ours = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (ours < 0 || ::grantpt(ours) != 0 || ::unlockpt(ours) != 0) return {-1, -1};
  return {ours, ::open(::ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC)};
}

void restore_signals() {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::vector<std::string> environment_of(const Launch& launch) {
  std::vector<std::string> variables = launch.variables;  // the first of a name is the one that is found
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string variable = *at;
    // The loader's own variables decide whether the program starts at all.
    if (!launch.empty_environment || variable.rfind("LD_", 0) == 0) variables.push_back(variable);
  }
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Program::Program(const Launch& launch) {
  out_fd_ = ::memfd_create("out", MFD_CLOEXEC);
  err_fd_ = ::memfd_create("err", MFD_CLOEXEC);
  std::vector<std::string> words = {STOKER_TRAIN_PROGRAM};
  words.insert(words.end(), launch.words.begin(), launch.words.end());
  std::vector<std::string> variables = environment_of(launch);
  const std::vector<char*> arguments = pointers_to(words), environment = pointers_to(variables);
  int out_capture = out_fd_;
  if (launch.standard_output == Stream::terminal) std::tie(terminal_fd_, out_capture) = open_terminal();
  if (launch.columns > 0) resize(launch.columns);
  begin_ = now_seconds();
  pid_ = ::fork();
  if (pid_ != 0) {
    if (out_capture != out_fd_) ::close(out_capture);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  restore_signals();
  limit_files(launch.file_size_limit);
  mount_small_disk(launch.small_disk);
  if (::chdir(launch.directory.c_str()) != 0) ::_exit(kCannotStart);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  connect(launch.standard_output, out_capture, 1);
  connect(launch.standard_error, err_fd_, 2);
  if (launch.unprivileged) drop_privileges();
  limit_processes(launch.process_limit);
  ::execve(words[0].c_str(), arguments.data(), environment.data());
  ::_exit(kCannotStart);
}

Program::~Program() {
  if (!has_ended()) {
    send(SIGKILL);
    wait();
  }
  ::close(out_fd_);
  ::close(err_fd_);
  if (terminal_fd_ >= 0) ::close(terminal_fd_);
}

void Program::send(int signal_number) const {
  if (!reaped_) ::kill(pid_, signal_number);
}

void Program::resize(int columns) const {
  const struct winsize size = {24, static_cast<unsigned short>(columns), 0, 0};
  ::ioctl(terminal_fd_, TIOCSWINSZ, &size);
}

bool Program::handles(int signal_number) const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("SigCgt:", 0) != 0) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal_number - 1) & 1) != 0;
  }
  return false;
}

std::string Program::out() const { return content_of(out_fd_); }
std::string Program::err() const { return content_of(err_fd_); }

/// A terminal holds only so much: what nobody reads would stop the program.
void Program::read_terminal() {
  char block[1 << 12];
  for (ssize_t got; terminal_fd_ >= 0 && (got = ::read(terminal_fd_, block, sizeof block)) > 0;) {
    if (::write(out_fd_, block, static_cast<size_t>(got)) != got) return;
  }
}

bool Program::has_ended() {
  read_terminal();
  if (reaped_) return true;
  int status = 0;
  struct rusage usage {};
  if (::wait4(pid_, &status, WNOHANG, &usage) != pid_) return false;
  reaped_ = true;
  ended_.wall_seconds = now_seconds() - begin_;
  ended_.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  if (WIFEXITED(status)) ended_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended_.signal = WTERMSIG(status);
  return true;
}

bool Program::wait_until(const std::function<bool()>& holds, double seconds) {
  const double deadline = now_seconds() + seconds;
  while (!holds()) {
    if (has_ended() || now_seconds() > deadline) return holds();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

Ended Program::wait(double seconds) {
  const double deadline = now_seconds() + seconds;
  while (!has_ended()) {
    if (!ended_.timed_out && now_seconds() > deadline) {
      ended_.timed_out = true;
      send(SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  read_terminal();
  ended_.out = out();
  ended_.err = err();
  return ended_;
}

Ended run(const Launch& launch, double seconds) { return Program(launch).wait(seconds); }

Ended run(const Words& words, const std::string& directory, double seconds) {
  Launch launch;
  launch.words = words;
  launch.directory = directory;
  return run(launch, seconds);
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::ifstream list("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

std::string last_line(const std::string& text) {
  const std::vector<std::string> lines = lines_of(text);
  const auto last = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) { return !line.empty(); });
  return last == lines.rend() ? "" : *last;
}

std::string without_result(const std::string& line) {
  const std::string text = std::regex_replace(line, std::regex(" metric=[^ ]+ value=[^ \n]+"), "");
  return std::regex_replace(text, std::regex("warning: backend: [^\n]*\n"), "");
}

std::string story_of(const Words& words, const Ended& ended) {
  std::ostringstream story;
  story << "$ train";
  for (const std::string& word : words) story << " '" << word << "'";
  story << "\nexit " << ended.exit_code << ", signal " << ended.signal << (ended.timed_out ? " (timed out)" : "")
        << ", " << ended.wall_seconds << " s, " << ended.cpu_seconds << " s of CPU\n--- stdout\n"
        << ended.out << "--- stderr\n"
        << ended.err << "---";
  return story.str();
}

}  // namespace stoker::cli
