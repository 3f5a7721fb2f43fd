// SPDX-License-Identifier: Apache-2.0
#include "commands/eval/eval.h"

namespace stoker::train {

using config::flag;

config::Word checkpoint_word(std::string& into) {
  return config::word("RUN_OR_CHECKPOINT", "Run directory, or one checkpoint directory of it.", into);
}

config::Flag which_flag(std::string& into) {
  return config::choice_flag("which", {"best", "last"}, "Checkpoint of the run directory to use (default: best).",
                             into);
}

bool takes_eval(const config::Row& row) { return row.in_eval; }

Command eval_command() {
  const auto flags = std::make_shared<EvalFlags>();
  Command command;
  command.name = "eval";
  command.usage = "train eval RUN_OR_CHECKPOINT [DATA] [options]";
  command.summary = "Evaluates a checkpoint on a labelled split. Options that are not given are those of the run.";
  command.words = {checkpoint_word(flags->checkpoint),
                   config::word("DATA",
                                "Labelled data in place of the run's own: a folder of classes or of splits, a CSV or "
                                "HDF5 file.",
                                flags->data, /*is_optional=*/true)};
  command.flags = {
      which_flag(flags->which),
      flag("split", "NAME", "Split to evaluate on (default: the run's validation split).", flags->split),
      flag("output,o", "FOLDER", "Folder for CSV files of results per image and per class.", flags->output),
      flag("against", "RUN_OR_CHECKPOINT",
           "Evaluates this one on the same images, too, and reports which is better and whether by more than chance.",
           flags->against),
      flag("resamples", "N", "Bootstrap resamples for the confidence intervals (default: 2000); 0: no intervals.",
           flags->resamples, 0, 1'000'000),
      flag("logits", "Writes the network's raw outputs as well.", flags->logits),
      flag("json", "Prints the figures as JSON on standard output.", flags->json)};
  command.takes = takes_eval;
  command.reads_files = command.opens_networks = true;
  attach(command, evaluate, flags);
  return command;
}

}  // namespace stoker::train
