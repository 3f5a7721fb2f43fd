// SPDX-License-Identifier: Apache-2.0
// `train export`: writes a trained network as ONNX, TorchScript or safetensors.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct ExportFlags {
  std::string checkpoint;           ///< run directory or checkpoint
  std::vector<std::string> inputs;  ///< images for the test vectors; empty: made-up ones
  std::string which = "best";       ///< best, last
  std::string format;               ///< onnx, torchscript, safetensors; empty: by the ending of `output`
  std::string output;               ///< empty: in the run directory
  bool with_preprocessing = false;  ///< bytes in
  bool with_predictions = false;    ///< probabilities out
  bool check = false;
};

Command export_command();
[[gnu::weak]] Outcome export_network(const Context& context, const ExportFlags& flags);

}  // namespace stoker::train
