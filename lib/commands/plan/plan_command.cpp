// SPDX-License-Identifier: Apache-2.0
#include "commands/plan/plan.h"

namespace stoker::train {

using config::flag;

Command plan_command() {
  const auto flags = std::make_shared<PlanFlags>();
  Command command;
  command.name = "plan";
  command.usage = "train plan [options]";
  command.summary = "Estimates what a run will take: memory, time, disk. Exits with 81 when it cannot fit.";
  command.flags = {
      flag("devices,num-devices", "LIST", "Numbers of devices to compare, as in 1,2,4 (default: that of the run).",
           flags->devices),
      flag("trial", "FILE", "", flags->trial),
      config::removed_flag("link,machines", "was removed: nobody can check a forecast of exchange between machines"),
      flag("json", "Prints the plan as JSON on standard output.", flags->json)};
  command.takes = [](const config::Row& row) { return row.name != "devices"; };  // its flag takes several numbers
  command.reads_files = command.opens_networks = true;
  attach(command, plan_run, flags);
  return command;
}

}  // namespace stoker::train
