// SPDX-License-Identifier: Apache-2.0
// Flags as shells complete them, of options and of the command line alike.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace stoker::config {

struct CompletableFlag {
  std::vector<std::string> names;  ///< with dashes: "--batch-size", "-b"; of a switch "--no-amp" as well
  bool takes_value = false;
  std::vector<std::string> values;  ///< that are known
  bool is_path = false;
  std::string help;  ///< one line without a full stop
};

/// What `verb` ("" trains) accepts, hidden flags left out. `networks`: values of --model.
std::vector<CompletableFlag> completable_flags(const Table& table, const std::string& verb,
                                               const std::vector<std::string>& networks);

// One file per shell.
std::string bash_completion(const Table& table, const std::vector<std::string>& networks);
std::string zsh_completion(const Table& table, const std::vector<std::string>& networks);
std::string fish_completion(const Table& table, const std::vector<std::string>& networks);

}  // namespace stoker::config
