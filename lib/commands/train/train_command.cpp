// SPDX-License-Identifier: Apache-2.0
#include "commands/train/train.h"
#include "train/failure/end_command.h"

namespace stoker::train {
namespace {

/// `find` is null in a program that is linked without it.
std::string called_or_empty(std::string (*find)(const config::Configuration&), const config::Configuration& given) {
  return find == nullptr ? "" : find(given);
}

}  // namespace

Command train_command() {
  const auto flags = std::make_shared<TrainFlags>();
  Command command;
  command.usage = "train [options]";
  command.summary = "Trains a network. The same command resumes an interrupted run.";
  command.flags = {
      config::flag("dry-run", "Checks options, data, some of its files and the model, and exits without training.",
                   flags->dry_run),
      config::flag("all-files", "Reads and decodes every file of the data with --dry-run, not 500 of each split.",
                   flags->all_files),
      config::flag("fresh", "Starts over: an older run in the run directory is set aside as DIR.old-1, DIR.old-2, ...",
                   flags->fresh),
      config::choice_flag("progress", {"bar", "plain", "off"},
                          "Live line with a bar where the output is a terminal (default); lines, as in a file; or the "
                          "lines of each epoch alone. NO_COLOR=1 leaves out colour.",
                          flags->progress),
      config::flag("on-end", "COMMAND",
                   "Runs a shell command when the run ends, however it ends. STOKER_EXIT_CODE, STOKER_REASON, "
                   "STOKER_RUN_DIR, STOKER_BEST, STOKER_METRIC, STOKER_UPDATES and STOKER_CHECKPOINT hold the result.",
                   flags->on_end)};
  command.takes = config::takes_all;
  command.reads_files = command.opens_networks = true;
  attach(command, train_network, flags);
  command.at_end = [flags](const Context& context, const Outcome& outcome) {
    const bool trains = !flags->dry_run && !context.configuration.flags.print_config;
    if (flags->on_end.empty() || !trains) return;
    const std::string run_dir = called_or_empty(run_directory_of, context.configuration);
    run_end_command(flags->on_end, context.configuration.options, run_dir, outcome);
  };
  return command;
}

}  // namespace stoker::train
