// SPDX-License-Identifier: Apache-2.0
// The words of a command line, parsed by the table and the syntax of the command. The only file that includes CLI11,
// which sees every value as text and whose exit codes never leave it.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace stoker::config {

/// One option as the user wrote it.
struct FlagValue {
  std::string name;  ///< name of a row or a shorthand, or an alias
  std::string text;
  std::string written;  ///< "--no-pin-mem"
};

/// Stores what is not an option where the syntax of the command and `common` are bound, unless `options_alone`, and
/// returns the options in the order written. Appends a problem for each unknown flag, word too many, missing word and
/// value. `correction`: the whole command as it was probably meant, where words are as other programs take them.
std::vector<FlagValue> parse_flags(const CommandLine& line, const Table& table, CommonFlags& common, bool options_alone,
                                   std::vector<std::string>& problems, std::string& correction);

}  // namespace stoker::config
