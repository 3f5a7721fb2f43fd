// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_rounds.h"

#include <algorithm>

#include "core/format.h"

namespace stoker::train {

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

core::Json json_of(const Spread& spread) {
  return {{"median", spread.median}, {"lowest", spread.lowest}, {"highest", spread.highest}};
}

std::string text_of(const Spread& spread, const std::string& unit) {
  return core::format("{:.1f} {} ({:.1f} to {:.1f})", spread.median, unit, spread.lowest, spread.highest);
}

}  // namespace stoker::train
