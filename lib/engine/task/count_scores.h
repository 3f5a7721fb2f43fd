// SPDX-License-Identifier: Apache-2.0
// Precision, recall and F1 from counts. Torch-free.
// An undefined ratio (nothing of a class, or none predicted) is 0, as scikit-learn's zero_division=0 has it.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::engine {

/// Of one class or label, over a split.
struct ClassCounts {
  int64_t hits = 0;    ///< predicted and true
  int64_t actual = 0;  ///< true
  int64_t predicted = 0;
};

struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
};

ClassScores scores_of(const ClassCounts& counts);
/// Mean over all classes, absent ones included: scikit-learn's average="macro" with labels= all of them.
ClassScores macro_average(const std::vector<ClassCounts>& classes);
/// From the sums over all classes.
ClassScores micro_average(const std::vector<ClassCounts>& classes);

}  // namespace stoker::engine
