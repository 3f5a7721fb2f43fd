// SPDX-License-Identifier: Apache-2.0
#include "commands/import/import.h"

namespace stoker::train {

using config::flag;

Command import_command() {
  const auto flags = std::make_shared<ImportFlags>();
  Command command;
  command.name = "import";
  command.usage = "train import FILE [--model NAME] [--output OUT.safetensors]";
  command.summary = "Lists the weights in a file of another program, and writes them as safetensors.";
  command.words = {config::word(
      "FILE", "Weights: safetensors, an index of such files, or a state dict of torch.save().", flags->file)};
  command.flags = {flag("model,m,arch", "NAME",
                        "The network that the weights are for: all of it must be there, and gets the names of "
                        "torchvision.",
                        flags->network),
                   flag("output,o", "FILE",
                        "File that the weights are written to as safetensors (default: none; they are listed on "
                        "standard output).",
                        flags->output)};
  attach(command, import_weights, flags);
  return command;
}

}  // namespace stoker::train
