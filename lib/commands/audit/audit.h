// SPDX-License-Identifier: Apache-2.0
// `train audit`: finds what is wrong with a data set.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct AuditFlags {
  std::string dataset;     ///< empty: that of the options, or of the run
  std::string run;         ///< whose networks score labels; empty: none
  std::string output;      ///< page with pictures; "-": standard output; empty: none
  int64_t suspects = 200;  ///< labels that are listed of each split
  bool json = false;
};

[[gnu::weak]] Outcome audit(const Context& context, const AuditFlags& flags);

inline Command audit_command() {
  const auto flags = std::make_shared<AuditFlags>();
  Command command =
      make_command("audit", "[DATASET] [options]",
                   "Checks a data set for leaks between splits, contradictory labels and corrupt files.", audit, flags);
  command.arguments = {config::argument("DATASET", "Folder that holds the data set, as --data-dir.", flags->dataset,
                                        /*is_optional=*/true)};
  command.flags = {
      config::flag("run", "RUN_OR_CHECKPOINT",
                   "Scores labels with the networks of this run. Its data set and options are the defaults.",
                   flags->run),
      config::flag("suspects", "N", "Labels of each split that are listed with --run (default: 200).", flags->suspects,
                   1, 1'000'000'000),
      config::output_flag("output,o", config::Flag::Writes::file,
                          "Writes a page with pictures of all findings; -: to standard output, instead of the text.",
                          flags->output),
      config::flag("json", "Prints the findings as JSON on standard output.", flags->json)};
  command.takes = [](const config::Row& row) {
    return row.group == "data" || row.name == "task" || row.in_eval || row.in_pack;
  };
  command.reads_files = command.opens_networks = true;
  return command;
}

}  // namespace stoker::train
