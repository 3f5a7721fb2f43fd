// SPDX-License-Identifier: Apache-2.0
// The words of a command line, told apart by the table and the verbs. The only file that meets CLI11, which
// sees every value as text and whose exit codes never leave it.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace stoker::config {

/// One option as the user wrote it.
struct FlagValue {
  std::string name;  ///< of a row or a shorthand, or an alias
  std::string text;
  std::string written;  ///< "--no-pin-mem"
};

/// Fills what is no option into `command` and returns the options in the order written. Appends a problem for
/// each unknown flag or verb, word too many, missing word and missing value.
std::vector<FlagValue> parse_flags(int argc, const char* const* argv, const Table& table, CommandLine& command,
                                   std::vector<std::string>& problems);

}  // namespace stoker::config
