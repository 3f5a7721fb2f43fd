// SPDX-License-Identifier: Apache-2.0
// The flags of `train export` alone.
#include "config/read/verbs.h"

namespace stoker::config {

std::vector<CommandFlag> make_export_flags() {
  return {
      {"format",
       {"f"},
       "",
       {"onnx", "torchscript", "safetensors"},
       {"export"},
       "What is written (default: onnx, or what the ending of --output says).",
       [](CommandLine& line, const std::string& text) { line.exported.format = text; }},
      {"output",
       {"o"},
       "FILE",
       {},
       {"export"},
       "The file (default: export/model.onnx, .pt or .safetensors in the run directory).",
       [](CommandLine& line, const std::string& text) { line.output = text; }},
      {"with-preprocessing",
       {},
       "",
       {},
       {"export"},
       "The network takes bytes, [images, height, width, channels], and normalises them itself.",
       [](CommandLine& line, const std::string&) { line.exported.with_preprocessing = true; }},
      {"with-predictions",
       {},
       "",
       {},
       {"export"},
       "The network gives probabilities, or numbers in the unit of the targets, in place of raw outputs.",
       [](CommandLine& line, const std::string&) { line.exported.with_predictions = true; }},
      {"check",
       {},
       "",
       {},
       {"export"},
       "Run what was written on the test vectors and compare it with this program's own predictions.",
       [](CommandLine& line, const std::string&) { line.exported.check = true; }},
  };
}

}  // namespace stoker::config
