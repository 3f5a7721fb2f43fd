// SPDX-License-Identifier: Apache-2.0
// `train import`: lists the weights in a file of another program, or writes them as safetensors.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct ImportFlags {
  std::string file;
  std::string network;  ///< whose names the tensors get; empty: they keep theirs
  std::string output;   ///< empty: none
};

[[gnu::weak]] Outcome import_weights(const Context& context, const ImportFlags& flags);

inline Command import_command() {
  const auto flags = std::make_shared<ImportFlags>();
  Command command = make_command(
      "import", "FILE [--model NAME] [--output OUT.safetensors]",
      "Lists pretrained weights in a file of another program, or converts them to safetensors.", import_weights, flags);
  command.arguments = {config::argument(
      "FILE", "Weights: safetensors, an index of such files, or a state dict of torch.save().", flags->file)};
  command.flags = {
      config::flag("model,m,arch", "NAME",
                   "The network that the weights are for: all of it must be there, and gets the names of "
                   "torchvision.",
                   flags->network),
      config::output_flag("output,o", config::Flag::Writes::file,
                          "File that the weights are written to as safetensors (default: none; they are listed on "
                          "standard output).",
                          flags->output)};
  return command;
}

}  // namespace stoker::train
