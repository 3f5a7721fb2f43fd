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

Command import_command();
[[gnu::weak]] Outcome import_weights(const Context& context, const ImportFlags& flags);

}  // namespace stoker::train
