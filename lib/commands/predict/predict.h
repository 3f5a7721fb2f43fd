// SPDX-License-Identifier: Apache-2.0
// `train predict`: classifies images without labels.
#pragma once

#include "commands/command.h"
#include "commands/eval/eval.h"

namespace stoker::train {

struct PredictFlags {
  std::string checkpoint;           ///< run directory or checkpoint
  std::vector<std::string> inputs;  ///< files, folders, patterns, "@list" or "-"
  std::string which = "best";       ///< best, last
  std::string output = "-";         ///< "-": standard output
  int64_t top_k = 1;                ///< classes that are named
  bool probabilities = false;       ///< probability of every class as well
  bool logits = false;
  bool features = false;  ///< instead of predictions
  bool json = false;
  std::string explain;  ///< folder for heat maps; empty: none
};

[[gnu::weak]] Outcome predict(const Context& context, const PredictFlags& flags);

inline Command predict_command() {
  const auto flags = std::make_shared<PredictFlags>();
  Command command = make_command("predict", "RUN_OR_CHECKPOINT INPUT... [options]",
                                 "Predicts classes, labels or numbers for images. Unset options are those of the run.",
                                 predict, flags);
  command.arguments = {
      checkpoint_argument(flags->checkpoint),
      config::arguments(
          "INPUT",
          "Image files, folders with images, patterns such as 'a/*.jpg', shards or HDF5 files; @FILE: a list of "
          "paths, one per line; -: such a list from standard input.",
          flags->inputs)};
  command.flags = {
      which_flag(flags->which),
      config::flag("top-k,topk", "N", "Number of top classes to print per image (default: 1).", flags->top_k, 1,
                   1'000'000),
      config::flag("probabilities", "Writes the probability of every class.", flags->probabilities),
      config::flag(
          "json", "Writes JSON Lines instead of CSV, one object per image; also if the output ends in .json or .jsonl.",
          flags->json),
      config::output_flag("output,o", config::Flag::Writes::file, "Output file (default: standard output).",
                          flags->output),
      config::flag("logits", "Writes the network's raw outputs as well.", flags->logits),
      config::output_flag("explain", config::Flag::Writes::folder,
                          "Folder for heat maps of the images: evidence for the prediction (LayerCAM).",
                          flags->explain),
      config::flag("features", "Writes the outputs of the layer before the classifier instead.", flags->features)};
  command.takes = [](const config::Row& row) { return row.in_predict; };
  command.reads_files = command.opens_networks = true;
  return command;
}

}  // namespace stoker::train
