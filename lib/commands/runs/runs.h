// SPDX-License-Identifier: Apache-2.0
// `train runs`: runs below a folder, as a table, as curves that follow them, or as a page.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct RunsFlags {
  std::vector<std::string> folders;  ///< folders that hold runs, or runs; empty: "runs"
  bool curves = false;               ///< draw once
  bool follow = false;               ///< draw, or keep the page up to date, until the runs end
  bool html = false;
  std::string output;  ///< the page; empty: report.html in the run directory, or here when there are several
  bool json = false;
};

Command runs_command();

}  // namespace stoker::train
