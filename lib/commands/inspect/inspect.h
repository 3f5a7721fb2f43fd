// SPDX-License-Identifier: Apache-2.0
// `train inspect replay|verify|diff|blame`: past updates of a run, computed again.
#pragma once

#include "commands/command.h"

namespace stoker::train {

struct ReplayFlags {
  std::string run;
  int64_t update = 0;  ///< from 1; 0: not given
  std::string output;  ///< folder; empty: in the run directory
  bool json = false;
};
struct VerifyFlags {
  std::string run;
  int64_t segments = 3;  ///< between checkpoints, that are computed again; 0: all
  bool json = false;
};
struct DiffFlags {
  std::string a, b;  ///< two runs, or two checkpoints
  bool json = false;
};
struct BlameFlags {
  std::string run;
  int64_t update = 0;  ///< the last one to look at; 0: found by itself
  bool json = false;
};

/// The four below it by name; does nothing itself.
Command inspect_command();
Command replay_command();
Command verify_command();
Command diff_command();
Command blame_command();
[[gnu::weak]] Outcome replay(const Context& context, const ReplayFlags& flags);
[[gnu::weak]] Outcome verify(const Context& context, const VerifyFlags& flags);
[[gnu::weak]] Outcome diff(const Context& context, const DiffFlags& flags);
[[gnu::weak]] Outcome blame(const Context& context, const BlameFlags& flags);

}  // namespace stoker::train
