// SPDX-License-Identifier: Apache-2.0
// `train export`: writes a trained network as ONNX, TorchScript or safetensors.
#pragma once

#include "commands/command.h"
#include "commands/eval/eval.h"

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

[[gnu::weak]] Outcome export_network(const Context& context, const ExportFlags& flags);

inline Command export_command() {
  const auto flags = std::make_shared<ExportFlags>();
  Command command =
      make_command("export", "RUN_OR_CHECKPOINT [INPUT...] [--format NAME] [--output FILE] [--check]",
                   "Writes a trained network as ONNX, TorchScript or safetensors, with test vectors beside it.",
                   export_network, flags);
  command.arguments = {checkpoint_argument(flags->checkpoint),
                       config::arguments("INPUT", "Images for the test vectors, as for predict (default: noise).",
                                         flags->inputs, /*is_optional=*/true)};
  command.flags = {
      which_flag(flags->which),
      config::choice_flag("format,f", {"onnx", "torchscript", "safetensors"},
                          "Format of the file (default: onnx, or what the ending of --output means).", flags->format),
      config::output_flag("output,o", config::Flag::Writes::file,
                          "The file (default: export/model.onnx, .pt or .safetensors in the run directory).",
                          flags->output),
      config::flag("with-preprocessing",
                   "The network takes bytes, [images, height, width, channels], and normalises them itself.",
                   flags->with_preprocessing),
      config::flag("with-predictions",
                   "The network gives probabilities, or numbers in the unit of the targets, instead of raw outputs.",
                   flags->with_predictions),
      config::flag("check", "Runs the file on the test vectors and compares it with this program's own predictions.",
                   flags->check)};
  command.opens_networks = true;
  return command;
}

}  // namespace stoker::train
