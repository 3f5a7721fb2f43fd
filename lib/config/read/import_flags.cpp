// SPDX-License-Identifier: Apache-2.0
// The flags of `train import` alone.
#include "config/read/verbs.h"

namespace stoker::config {

std::vector<CommandFlag> make_import_flags() {
  return {
      {"model",
       {"m", "arch"},
       "NAME",
       {},
       {"import"},
       "The network that the weights are for: all of it must be there, and gets the names of torchvision.",
       [](CommandLine& line, const std::string& text) { line.network = text; }},
      {"output",
       {"o"},
       "FILE",
       {},
       {"import"},
       "Where the weights are written as safetensors (default: nowhere; they are listed on standard output).",
       [](CommandLine& line, const std::string& text) { line.output = text; }},
  };
}

}  // namespace stoker::config
