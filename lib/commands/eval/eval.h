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
  int64_t resamples = 2000;    ///< of the bootstrap; 0: no intervals
  bool logits = false;
  bool json = false;
};

Command eval_command();
[[gnu::weak]] Outcome evaluate(const Context& context, const EvalFlags& flags);

// The words and options that eval, predict and export have in common.
config::Word checkpoint_word(std::string& into);
config::Flag which_flag(std::string& into);
bool takes_eval(const config::Row& row);

}  // namespace stoker::train
