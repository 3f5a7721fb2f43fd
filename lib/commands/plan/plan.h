// SPDX-License-Identifier: Apache-2.0
// `train plan`: what a run will take, without a run.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct PlanFlags {
  std::string devices;  ///< counts to compare: "1,2,4"; empty: that of the run
  std::string trial;    ///< hidden: the file for what this rank of a trial has measured
  bool json = false;
};

Command plan_command();
[[gnu::weak]] Outcome plan_run(const Context& context, const PlanFlags& flags);

}  // namespace stoker::train
