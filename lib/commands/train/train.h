// SPDX-License-Identifier: Apache-2.0
// `train` without a word: trains a network, from scratch or from a checkpoint.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct TrainFlags {
  bool dry_run = false;
  bool all_files = false;  ///< --dry-run looks at every file
  bool fresh = false;      ///< an older run in the run directory is set aside
  std::string progress;    ///< bar, plain or off; empty: bar
  std::string on_end;      ///< a command of the shell, run when the run ends; empty: none
};

Command train_command();
/// As the run itself finds it; empty for options that are wrong.
[[gnu::weak]] std::string run_directory_of(const config::Configuration& configuration);
[[gnu::weak]] Outcome train_network(const Context& context, const TrainFlags& flags);

}  // namespace stoker::train
