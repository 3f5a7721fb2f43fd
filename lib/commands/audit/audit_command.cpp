// SPDX-License-Identifier: Apache-2.0
#include "commands/audit/audit.h"

namespace stoker::train {

using config::flag;

Command audit_command() {
  const auto flags = std::make_shared<AuditFlags>();
  Command command;
  command.name = "audit";
  command.usage = "train audit DATASET [options]";
  command.summary = "Finds what is wrong with a data set: an image in two splits, contradicting labels, bad files.";
  command.words = {
      config::word("DATASET", "Folder that holds the data set, as --data-dir.", flags->dataset, /*is_optional=*/true)};
  command.flags = {
      flag("run", "RUN_OR_CHECKPOINT",
           "Scores labels with the networks of this run. Its data set and options are the defaults.", flags->run),
      flag("suspects", "N", "Labels of each split that are listed with --run (default: 200).", flags->suspects, 1,
           1'000'000'000),
      flag("output,o", "FILE",
           "Writes a page with pictures of all findings; - is standard output, in place of the text.", flags->output),
      flag("json", "Prints the findings as JSON on standard output.", flags->json)};
  command.takes = [](const config::Row& row) {
    return row.group == "data" || row.name == "task" || row.in_eval || row.in_pack;
  };
  command.reads_files = command.opens_networks = true;
  attach(command, audit, flags);
  return command;
}

}  // namespace stoker::train
