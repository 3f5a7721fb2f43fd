// SPDX-License-Identifier: Apache-2.0
#include "commands/check/check.h"
#include "commands/preview/preview.h"

namespace stoker::train {

Command preview_command() {
  const auto flags = std::make_shared<PreviewFlags>();
  Command command;
  command.name = "preview";
  command.usage = "train preview [options] [--output FILE]";
  command.summary = "Draws what the network gets: augmented images, and the same ones over several epochs.";
  command.flags = {config::flag("output,o", "FILE", "The picture, a PNG (default: preview.png); - is standard output.",
                                flags->output)};
  command.takes = takes_all_but_run;
  command.reads_files = true;
  attach(command, preview, flags);
  return command;
}

}  // namespace stoker::train
