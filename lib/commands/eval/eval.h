// SPDX-License-Identifier: Apache-2.0
// `train eval`: evaluates a checkpoint on labelled images, with confidence intervals.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct EvalFlags {
  std::string checkpoint;      ///< run directory or checkpoint
  std::string data;            ///< labelled data in place of the run's own; empty: none
  std::string which = "best";  ///< best, last
  std::string split;           ///< empty: the validation split
  std::string output;          ///< folder for CSV files; empty: none
  std::string against;         ///< another run or checkpoint to compare with; empty: none
  int64_t resamples = 2000;    ///< number of bootstrap resamples; 0: no intervals
  bool logits = false;
  bool json = false;
  bool calibrate = false;  ///< the checkpoint gets a temperature and thresholds
};

[[gnu::weak]] Outcome evaluate(const Context& context, const EvalFlags& flags);

// Also for predict and export.

inline config::Flag which_flag(std::string& into) {
  return config::choice_flag("which", {"best", "last"}, "Checkpoint of the run directory to use (default: best).",
                             into);
}

inline bool takes_eval(const config::Row& row) { return row.in_eval; }

inline Command eval_command() {
  const auto flags = std::make_shared<EvalFlags>();
  Command command =
      make_command("eval", "RUN_OR_CHECKPOINT [DATA] [options]",
                   "Evaluates a checkpoint on a labelled split. Unset options are those of the run.", evaluate, flags);
  command.arguments = {
      checkpoint_argument(flags->checkpoint),
      config::argument("DATA",
                       "Labelled data instead of the run's own: a folder of classes or of splits, a CSV or "
                       "HDF5 file.",
                       flags->data, /*is_optional=*/true)};
  config::Flag resamples =
      config::flag("resamples", "N",
                   "Bootstrap resamples for the confidence intervals, at least 40 (default: 2000); 0: no intervals.",
                   flags->resamples, 0, 1'000'000);
  resamples.store = [flags, number = resamples.store](const std::string& text) -> std::string {
    constexpr int64_t kLeast = 40;  // with fewer, a 95 % interval has no value at its ends
    const std::string problem = number(text);
    if (!problem.empty() || flags->resamples == 0 || flags->resamples >= kLeast) return problem;
    return text + " is too few for a 95 % interval; accepted: 40 to 1000000, or 0 for no intervals";
  };
  command.flags = {
      which_flag(flags->which),
      config::flag("split", "NAME", "Split to evaluate on (default: the run's validation split).", flags->split),
      config::output_flag("output,o", config::Flag::Writes::folder,
                          "Folder for CSV files of results per image and per class.", flags->output),
      config::flag("against", "RUN_OR_CHECKPOINT",
                   "Compares with this run or checkpoint on the same images, with confidence intervals.",
                   flags->against),
      resamples,
      config::flag("calibrate",
                   "Fits a temperature and, for labels, thresholds to the split and stores them in preprocess.json; "
                   "prints the calibration error (ECE) of held-out images before and after.",
                   flags->calibrate),
      config::flag("logits", "Writes the network's raw outputs as well.", flags->logits),
      config::flag("json", "Prints the figures as JSON on standard output.", flags->json)};
  command.takes = takes_eval;
  command.reads_files = command.opens_networks = true;
  return command;
}

}  // namespace stoker::train
