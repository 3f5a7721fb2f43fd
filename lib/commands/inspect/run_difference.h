// SPDX-License-Identifier: Apache-2.0
// The differences between two runs, and where they diverge: by their records, then by computing the part in between
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/inspect/recomputation.h"
#include "commands/inspect/recorded_run.h"

namespace stoker::train {

/// A text of both runs under one name; empty where a run has none.
struct DifferentText {
  std::string name, a, b;
};

/// Options, data and program of two checkpoints, from their manifests and states.
struct DifferentSetup {
  std::vector<DifferentText> options, program;
  std::optional<bool> same_data;  ///< absent: not known
};
DifferentSetup compare_setups(const std::string& checkpoint_a, const std::string& checkpoint_b);

/// Between two updates of which both runs have a record.
struct Window {
  int64_t equal = 0;      ///< the last at which records agree; 0: the beginning, of which there is none
  int64_t different = 0;  ///< the first at which they do not; 0: all agree
  int64_t compared = 0;   ///< updates of which both have a record
};
Window compare_records(const RecordedRun& a, const RecordedRun& b);

/// The first thing in which two runs are not the same.
struct DivergencePoint {
  int64_t update = 0;             ///< from 1; 0: the weights with which they begin, or none was found
  int64_t epoch = 0;              ///< from 1
  std::vector<std::string> what;  ///< images, labels, learning rate, weights: one per line; empty: none was found
  std::string tensor;             ///< the first that differs; empty: unknown
};
/// Computes the updates of `window` again in both runs. Throws as Recomputation.
DivergencePoint find_divergence(const config::CommandLine& line, const RecordedRun& a, const RecordedRun& b,
                                const Window& window);

}  // namespace stoker::train
