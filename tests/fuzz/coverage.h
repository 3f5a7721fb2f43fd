// SPDX-License-Identifier: Apache-2.0
// Which branches an input took, and what was compared with what. Filled by the calls that
// -fsanitize-coverage=trace-pc,trace-cmp puts into the code under test.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::fuzz {

/// Forgets what the last input did. Call before each run of the target.
void start_coverage();
/// Adds the edges of the last run to those ever seen; returns how many (edge, count class) pairs are new.
size_t take_new_coverage();
/// Edges ever seen.
size_t covered_edges();

/// Two numbers that met in a comparison of the code under test; `bytes` wide (1, 2, 4 or 8).
struct Comparison {
  uint64_t left = 0, right = 0;
  int bytes = 0;
};
/// One of the last comparisons; `bytes` is 0 when there was none.
Comparison recent_comparison(uint64_t which);

}  // namespace stoker::fuzz
