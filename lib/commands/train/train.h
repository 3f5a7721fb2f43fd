// SPDX-License-Identifier: Apache-2.0
// `train` without a command: trains a network, from scratch or from a checkpoint.
#pragma once

#include "commands/command.h"
#include "train/failure/end_command.h"

namespace stoker::train {

struct TrainFlags {
  bool dry_run = false;
  bool all_files = false;  ///< --dry-run looks at every file
  bool fresh = false;      ///< an older run in the run directory is set aside
  std::string on_end;      ///< a command of the shell, run when the run ends; empty: none
};

/// As the run itself finds it; empty for options that are wrong.
[[gnu::weak]] std::string run_directory_of(const config::Configuration& configuration);
[[gnu::weak]] Outcome train_network(const Context& context, const TrainFlags& flags);

/// `find` is null in a program that is linked without it.
inline std::string called_or_empty(std::string (*find)(const config::Configuration&),
                                   const config::Configuration& given) {
  return find == nullptr ? "" : find(given);
}

inline Command train_command() {
  const auto flags = std::make_shared<TrainFlags>();
  Command command = make_command("", "[options]", "Trains a network. The same command resumes an interrupted run.",
                                 train_network, flags);
  command.flags = {
      config::flag("dry-run", "Checks options, data, some of its files and the model, and exits without training.",
                   flags->dry_run),
      config::flag("all-files", "With --dry-run: decodes every file of the data instead of 500 per split.",
                   flags->all_files),
      config::flag("fresh", "Starts over: an older run in the run directory is set aside as DIR.old-1, DIR.old-2, ...",
                   flags->fresh),
      config::flag("on-end", "COMMAND",
                   "Shell command to run when the run ends for any reason. STOKER_EXIT_CODE, STOKER_REASON, "
                   "STOKER_RUN_DIR, STOKER_BEST, STOKER_METRIC, STOKER_UPDATES and STOKER_CHECKPOINT hold the result.",
                   flags->on_end)};
  command.takes = config::takes_all;
  command.reads_files = command.opens_networks = true;
  command.at_end = [flags](const Context& context, const Outcome& outcome) {
    const bool trains = !flags->dry_run && !context.configuration.flags.print_config;
    if (flags->on_end.empty() || !trains) return;
    const std::string run_dir = called_or_empty(run_directory_of, context.configuration);
    run_end_command(flags->on_end, context.configuration.options, run_dir, outcome);
  };
  return command;
}

}  // namespace stoker::train
