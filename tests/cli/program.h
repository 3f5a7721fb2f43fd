// SPDX-License-Identifier: Apache-2.0
// Starts the built program `train` as a user would and looks at how it ends. Independent of the libraries.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lines_of.h"

namespace stoker::cli {

using Words = std::vector<std::string>;

/// Where a standard stream of the program goes.
enum class Stream { captured, closed, broken_pipe, full, terminal };

/// A program that takes longer hangs, however busy the machine is.
inline constexpr double kHangSeconds = 600;

/// Exit code of a process in which the program could not be started as asked.
inline constexpr int kCannotStart = 126;

struct Launch {
  Words words;                  ///< the command line without the program's name
  std::string directory = ".";  ///< working directory
  Stream standard_output = Stream::captured;
  Stream standard_error = Stream::captured;
  int columns = 0;                          ///< width of Stream::terminal; 0: unknown
  bool empty_environment = false;           ///< no HOME, no TERM, no locale, no PATH
  std::vector<std::string> variables = {};  ///< "NAME=value", over the environment
  bool unprivileged = false;                ///< as the user nobody when the test runs as root
  int64_t file_size_limit = -1;             ///< bytes, as ulimit -f; -1: none
  int64_t process_limit = -1;               ///< as ulimit -u; root has none; -1: none
  std::string small_disk = "";              ///< a file system of 128 KiB is mounted there, for the program alone
};

/// How a process ended.
struct Ended {
  int exit_code = -1;      ///< -1: ended by a signal
  int signal = 0;          ///< the signal that killed it, or 0
  bool timed_out = false;  ///< killed by the test because it took too long
  double wall_seconds = 0;
  double cpu_seconds = 0;
  std::string out, err;  ///< what it wrote
};

/// A running program; killed with the object, and by the kernel should the test itself be killed.
class Program {
 public:
  explicit Program(const Launch& launch);
  ~Program();
  Program& operator=(Program&&) = delete;  // not copied, not moved

  pid_t pid() const { return pid_; }
  void send(int signal_number) const;
  std::string out() const;  ///< written to standard output so far
  std::string err() const;
  /// Makes its terminal this wide.
  void resize(int columns) const;
  /// Whether it has a handler of its own for the signal by now.
  bool handles(int signal_number) const;
  /// Polls until `holds()`; false when the program ended or `seconds` passed before.
  bool wait_until(const std::function<bool()>& holds, double seconds = kHangSeconds);
  /// Waits for the end; kills the program after `seconds`.
  Ended wait(double seconds = kHangSeconds);

 private:
  bool has_ended();
  void read_terminal();

  pid_t pid_ = -1;
  int out_fd_ = -1, err_fd_ = -1;
  int terminal_fd_ = -1;  ///< our end of the terminal that standard output goes to, if any
  double begin_ = 0;
  bool reaped_ = false;
  Ended ended_;
};

Ended run(const Launch& launch, double seconds = kHangSeconds);
/// In working directory `directory`.
Ended run(const Words& words, const std::string& directory, double seconds = kHangSeconds);

/// Processes that `parent` started and that are still there, in the order of their start.
std::vector<pid_t> children_of(pid_t parent);

/// A port of the loopback address that nobody uses now.
int free_port();

/// The last line that is not empty.
std::string last_line(const std::string& text);
/// A last line of the program less its metric and value, without warnings about the backend before it.
std::string without_result(const std::string& line);
/// For failure messages: the command line, the exit and both streams.
std::string story_of(const Words& words, const Ended& ended);

}  // namespace stoker::cli
