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

[[gnu::weak]] Outcome check_machine(const Context& context, const CheckFlags& flags);

inline Command check_command() {
  const auto flags = std::make_shared<CheckFlags>();
  Command command = make_command("check", "[options]",
                                 "Measures this machine and recommends settings; with data also the time of an epoch.",
                                 check_machine, flags);
  command.flags = {
      config::output_flag("output,o", config::Flag::Writes::file, "Output file (default: stdout).", flags->output),
      config::flag("all-files", "Reads and decodes every file of the data, not 500 of each split.", flags->all_files),
      config::flag("json", "Writes the findings as JSON.", flags->json)};
  command.takes = takes_all_but_run;
  command.reads_files = command.opens_networks = true;
  return command;
}

}  // namespace stoker::train
