// SPDX-License-Identifier: Apache-2.0
#include "commands/check/check.h"

namespace stoker::train {

using config::flag;

bool takes_all_but_run(const config::Row& row) { return row.group != "run"; }

Command check_command() {
  const auto flags = std::make_shared<CheckFlags>();
  Command command;
  command.name = "check";
  command.usage = "train check [options]";
  command.summary = "Measures this machine and recommends settings; with --config also the time of an epoch.";
  command.flags = {
      flag("output,o", "FILE", "File for the findings; - (the default) is standard output.", flags->output),
      flag("all-files", "Reads and decodes every file of the data, not 500 of each split.", flags->all_files),
      flag("json", "Writes the findings as JSON.", flags->json)};
  command.takes = takes_all_but_run;
  command.reads_files = command.opens_networks = true;
  attach(command, check_machine, flags);
  return command;
}

}  // namespace stoker::train
