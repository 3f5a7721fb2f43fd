// SPDX-License-Identifier: Apache-2.0
// `train predict`: classifies images without labels.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct PredictFlags {
  std::string checkpoint;           ///< run directory or checkpoint
  std::vector<std::string> inputs;  ///< files, folders, patterns, "@list" or "-"
  std::string which = "best";       ///< best, last
  std::string output = "-";         ///< "-": standard output
  int64_t top_k = 1;                ///< classes that are named
  bool probabilities = false;       ///< of every class
  bool logits = false;
  bool json = false;
};

Command predict_command();
[[gnu::weak]] Outcome predict(const Context& context, const PredictFlags& flags);

}  // namespace stoker::train
