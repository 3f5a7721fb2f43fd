// SPDX-License-Identifier: Apache-2.0
// `train list`: networks, presets, options, and scripts that complete the command line.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct ListFlags {
  std::string what;    ///< models, presets, options, completion
  std::string shell;   ///< completion: bash, zsh, fish
  std::string format;  ///< options: text, markdown, man, schema
};

Command list_command();

}  // namespace stoker::train
