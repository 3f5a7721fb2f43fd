// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

#include <cerrno>
#include <cstring>

namespace stoker::core {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage: return 64;
    case ErrorKind::data: return 65;
    case ErrorKind::no_input: return 66;
    case ErrorKind::unavailable: return 69;
    case ErrorKind::bug: return 70;
    case ErrorKind::os: return 71;
    case ErrorKind::cannot_create: return 73;
    case ErrorKind::io: return 74;
    case ErrorKind::peer_lost: return 76;
    case ErrorKind::permission: return 77;
    case ErrorKind::config: return 78;
    case ErrorKind::diverged: return 80;
    case ErrorKind::out_of_memory: return 81;
    case ErrorKind::run_dir_in_use: return 82;
    case ErrorKind::backend: return 83;
  }
  return 70;
}

Error errno_error(int error_number, const std::string& action, const std::string& path, ErrorKind otherwise) {
  ErrorKind kind = otherwise;
  std::string hint;
  switch (error_number) {
    case EACCES:
    case EPERM:
      kind = ErrorKind::permission;
      hint = "check the owner and mode of the path and of its folders";
      break;
    case ENOENT:
      if (otherwise != ErrorKind::cannot_create) kind = ErrorKind::no_input;
      break;
    case ENOMEM: kind = ErrorKind::out_of_memory; break;
    case ENOSPC:
    case EDQUOT:
      kind = ErrorKind::io;
      hint = "free some space, then run the same command again";
      break;
    case EIO: kind = ErrorKind::io; break;
    case EMFILE:
    case ENFILE:
      kind = ErrorKind::os;
      hint = "raise the limit of open files (ulimit -n), or use fewer workers";
      break;
    default: break;
  }
  return Error(kind, "cannot " + action + " " + path + ": " + std::strerror(error_number), hint);
}

}  // namespace stoker::core
