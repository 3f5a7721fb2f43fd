// SPDX-License-Identifier: Apache-2.0
// Another program, started and waited for.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stoker::core {

struct ChildCommand {
  std::vector<std::string> words;  ///< path of the program, or its name to be looked up in PATH, and its arguments
  std::vector<std::pair<std::string, std::string>> variables = {};  ///< over this process's environment
};

/// Runs it with this process's standard streams and with the usual actions of signals, and returns its exit code, or
/// 128 + the signal that ended it. A signal to this process does not end the wait. Throws Error{os} where it cannot be
/// started; a program that is not there may be reported as exit code 127.
int run_child(const ChildCommand& command);

}  // namespace stoker::core
