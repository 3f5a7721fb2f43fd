// SPDX-License-Identifier: Apache-2.0
// How a command ended.
#pragma once

#include <cstdint>
#include <string>

namespace stoker::train {

/// For the machine-readable last line on stderr.
struct Outcome {
  int exit_code = 0;
  std::string reason{};  ///< "finished", "already-finished", "signal:TERM", ...; empty: no last line
  int64_t updates = -1;  ///< -1: not a training run
  std::string checkpoint{};
  std::string metric{};  ///< what `value` is of: "top1"; empty: nothing was evaluated
  double value = 0;      ///< metric of a run's best epoch
  int rank = -1;         ///< rank started here that crashed; -1: none did
};

}  // namespace stoker::train
