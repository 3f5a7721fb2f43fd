// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/eval.h"
#include "commands/export/export.h"

namespace stoker::train {

using config::flag;

Command export_command() {
  const auto flags = std::make_shared<ExportFlags>();
  Command command;
  command.name = "export";
  command.usage = "train export RUN_OR_CHECKPOINT [INPUT...] [--format NAME] [--output FILE] [--check]";
  command.summary = "Writes a trained network as ONNX, TorchScript or safetensors, with test vectors beside it.";
  command.words = {checkpoint_word(flags->checkpoint),
                   config::words("INPUT", "Images for the test vectors, as for predict (default: made-up ones).",
                                 flags->inputs, /*is_optional=*/true)};
  command.flags = {
      which_flag(flags->which),
      config::choice_flag("format,f", {"onnx", "torchscript", "safetensors"},
                          "Format of the file (default: onnx, or what the ending of --output means).", flags->format),
      flag("output,o", "FILE", "The file (default: export/model.onnx, .pt or .safetensors in the run directory).",
           flags->output),
      flag("with-preprocessing",
           "The network takes bytes, [images, height, width, channels], and normalises them itself.",
           flags->with_preprocessing),
      flag("with-predictions",
           "The network gives probabilities, or numbers in the unit of the targets, in place of raw outputs.",
           flags->with_predictions),
      flag("check", "Runs the file on the test vectors and compares it with this program's own predictions.",
           flags->check)};
  command.opens_networks = true;
  attach(command, export_network, flags);
  return command;
}

}  // namespace stoker::train
