// SPDX-License-Identifier: Apache-2.0
// The one exception type of the program and the exit codes that schedulers read.
// Depends on no library; every other module translates foreign exceptions into it.
#pragma once

#include <stdexcept>
#include <string>

namespace stoker::core {

/// Why a run cannot continue. Each kind has one exit code; see docs/reference/exit-codes.md.
enum class ErrorKind {
  usage,           ///< 64: the command line is wrong
  data,            ///< 65: content of data or of a checkpoint is wrong
  no_input,        ///< 66: a named input does not exist or cannot be read
  unavailable,     ///< 69: a requested device or backend is not there
  bug,             ///< 70: our own mistake
  os,              ///< 71: operating system, driver or device failure
  cannot_create,   ///< 73: an output cannot be created
  io,              ///< 74: input/output error, disk full
  peer_lost,       ///< 76: a data-parallel peer was lost or timed out
  permission,      ///< 77: permission denied
  config,          ///< 78: invalid configuration, or mismatch with the resumed run
  diverged,        ///< 80: the loss or the weights are no longer finite
  out_of_memory,   ///< 81: host or device memory ran out
  run_dir_in_use,  ///< 82: another process holds the run directory
  backend,         ///< 83: a library computes wrongly on this machine, and no alternative is right
};

/// Exit codes that are not errors of one kind.
inline constexpr int kExitOk = 0;
inline constexpr int kExitStopped = 75;       ///< stopped on request, checkpoint verified: run again
inline constexpr int kExitInterrupted = 130;  ///< Ctrl-C

/// The process exit code of an error kind (sysexits where they fit).
int exit_code(ErrorKind kind);

/// The error: its cause (`what()`: path and cause) and what the user can do next (`hint()`; may be empty).
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string hint = "")
      : std::runtime_error(message), kind_(kind), hint_(std::move(hint)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }
  /// Both, as users read them: the hint in a line of its own.
  std::string text() const { return hint_.empty() ? what() : std::string(what()) + "\nhint: " + hint_; }

 private:
  ErrorKind kind_;
  std::string hint_;
};

/// An error made from errno, naming `action` and `path`. Maps EACCES/EPERM to permission, ENOENT to
/// no_input, ENOMEM to out_of_memory, ENOSPC/EDQUOT/EIO to io, EMFILE/ENFILE to os; anything else becomes `otherwise`.
Error errno_error(int error_number, const std::string& action, const std::string& path, ErrorKind otherwise);

}  // namespace stoker::core
