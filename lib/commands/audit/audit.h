// SPDX-License-Identifier: Apache-2.0
// `train audit`: finds what is wrong with a data set.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct AuditFlags {
  std::string dataset;     ///< empty: that of the options, or of the run
  std::string run;         ///< whose networks score labels; empty: none
  std::string output;      ///< page with pictures; "-": standard output; empty: none
  int64_t suspects = 200;  ///< labels that are listed of each split
  bool json = false;
};

Command audit_command();
[[gnu::weak]] Outcome audit(const Context& context, const AuditFlags& flags);

}  // namespace stoker::train
