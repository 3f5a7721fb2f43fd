// SPDX-License-Identifier: Apache-2.0
// `train check`: measures this machine and recommends settings.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct CheckFlags {
  std::string output = "-";  ///< "-": standard output
  bool all_files = false;
  bool json = false;
};

Command check_command();
[[gnu::weak]] Outcome check_machine(const Context& context, const CheckFlags& flags);

/// Every option but those of a run directory.
bool takes_all_but_run(const config::Row& row);

}  // namespace stoker::train
