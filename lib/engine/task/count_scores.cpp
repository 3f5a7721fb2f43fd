// SPDX-License-Identifier: Apache-2.0
#include "engine/task/count_scores.h"

namespace stoker::engine {
namespace {

double ratio_or_zero(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

ClassScores scores_of(const ClassCounts& counts) {
  return {ratio_or_zero(counts.hits, counts.predicted), ratio_or_zero(counts.hits, counts.actual),
          ratio_or_zero(2 * counts.hits, counts.actual + counts.predicted)};
}

ClassScores macro_average(const std::vector<ClassCounts>& classes) {
  ClassScores mean;
  for (const ClassCounts& counts : classes) {
    const ClassScores scores = scores_of(counts);
    mean.precision += scores.precision;
    mean.recall += scores.recall;
    mean.f1 += scores.f1;
  }
  const auto n = static_cast<double>(classes.empty() ? 1 : classes.size());
  return {mean.precision / n, mean.recall / n, mean.f1 / n};
}

ClassScores micro_average(const std::vector<ClassCounts>& classes) {
  ClassCounts sum;
  for (const ClassCounts& counts : classes) {
    sum.hits += counts.hits;
    sum.actual += counts.actual;
    sum.predicted += counts.predicted;
  }
  return scores_of(sum);
}

}  // namespace stoker::engine
