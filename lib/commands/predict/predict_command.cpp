// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/eval.h"
#include "commands/predict/predict.h"

namespace stoker::train {

using config::flag;

Command predict_command() {
  const auto flags = std::make_shared<PredictFlags>();
  Command command;
  command.name = "predict";
  command.usage = "train predict RUN_OR_CHECKPOINT INPUT... [options]";
  command.summary = "Classifies images without labels. Options that are not given are those of the run.";
  command.words = {
      checkpoint_word(flags->checkpoint),
      config::words("INPUT",
                    "Image files, folders that are searched for images, patterns as 'a/*.jpg', shards or HDF5 files; "
                    "@FILE: a list of paths, one per line; -: such a list from standard input.",
                    flags->inputs)};
  command.flags = {
      which_flag(flags->which),
      flag("top-k,topk", "N", "Classes that are named for each image, the most probable first (default: 1).",
           flags->top_k, 1, 1'000'000),
      flag("probabilities", "Writes the probability of every class.", flags->probabilities),
      flag("json",
           "Writes one JSON object per line and image in place of CSV; also where the output ends in .json or "
           ".jsonl.",
           flags->json),
      flag("output,o", "FILE", "CSV file for the predictions; - (the default) is standard output.", flags->output),
      flag("logits", "Writes the network's raw outputs as well.", flags->logits)};
  command.takes = [](const config::Row& row) { return row.in_predict; };
  command.reads_files = command.opens_networks = true;
  attach(command, predict, flags);
  return command;
}

}  // namespace stoker::train
