// SPDX-License-Identifier: Apache-2.0
// The flags of `train plan` that are no options.
#include "config/read/verbs.h"

namespace stoker::config {

std::vector<CommandFlag> make_plan_flags() {
  const std::vector<std::string> plan = {"plan"};
  return {
      {"devices",
       {"num-devices"},
       "LIST",
       {},
       plan,
       "Numbers of devices per machine to compare, as in 1,2,4 (default: that of the run). Where replicas are not "
       "given, "
       "there are as many as devices.",
       [](CommandLine& line, const std::string& text) { line.plan.devices = text; }},
      {"machines",
       {},
       "M",
       {},
       plan,
       "Machines with so many devices each (default: 1).",
       [](CommandLine& line, const std::string& text) { line.plan.machines = text; }},
      {"link",
       {},
       "RATE[,DELAY]",
       {},
       plan,
       "What joins the machines: bits per second each way, and the time of one message, as in 25Gbit or 1Gbit,1ms "
       "(default: 10Gbit,0.05ms).",
       [](CommandLine& line, const std::string& text) { line.plan.link = text; }},
      {"trial", {}, "FILE", {}, plan, "", [](CommandLine& line, const std::string& text) { line.plan.trial = text; }},
  };
}

}  // namespace stoker::config
