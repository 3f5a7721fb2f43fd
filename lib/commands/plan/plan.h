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

[[gnu::weak]] Outcome plan_run(const Context& context, const PlanFlags& flags);

inline Command plan_command() {
  const auto flags = std::make_shared<PlanFlags>();
  Command command =
      make_command("plan", "[options]", "Estimates memory, time and disk use of a run. Exits with 81 if it cannot fit.",
                   plan_run, flags);
  command.flags = {
      config::flag("devices,num-devices", "LIST",
                   "Numbers of devices to compare, as in 1,2,4 (default: that of the run).", flags->devices),
      config::flag("trial", "FILE", "", flags->trial),
      config::removed_flag("link,machines", "was removed: nobody can check a forecast of exchange between machines"),
      config::flag("json", "Prints the plan as JSON on standard output.", flags->json)};
  command.takes = [](const config::Row& row) { return row.name != "devices"; };  // its flag takes several numbers
  command.reads_files = command.opens_networks = true;
  return command;
}

}  // namespace stoker::train
