// SPDX-License-Identifier: Apache-2.0
// Successive halving: which combinations of a sweep advance after a share of their updates.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "commands/sweep/sweep_parts.h"
#include "core/format.h"
#include "core/text/csv.h"

namespace stoker::train {

using core::format;

bool stands_before(const MeanResult& a, const MeanResult& b, bool lower_is_better) {
  if (std::isnan(a.value) || std::isnan(b.value)) return !std::isnan(a.value) && std::isnan(b.value);
  // The mean of the same results in another order differs by rounding.
  const auto rounded = [](double value) { return std::strtod(format("{:.12g}", value).c_str(), nullptr); };
  const double first = rounded(a.value), second = rounded(b.value);
  if (first == second) return a.loss < b.loss;
  return lower_is_better ? first < second : first > second;
}

int64_t short_rungs(const Sweep& sweep) {
  if (sweep.halve == 0) return 0;
  int64_t rungs = 0;
  for (auto left = static_cast<int64_t>(sweep.recipes.size()); left >= sweep.halve; left /= sweep.halve) ++rungs;
  return rungs;
}

int64_t divisor_of(const Sweep& sweep, int64_t rung) {
  int64_t divisor = 1;
  for (int64_t i = rung; i < short_rungs(sweep); ++i) divisor *= sweep.halve;
  return divisor;
}

std::vector<RungRow> ranked(const Sweep& sweep, int64_t rung, const std::vector<size_t>& recipes,
                            const std::vector<std::optional<PartResult>>& results) {
  std::vector<RungRow> rows;
  std::vector<double> losses(sweep.recipes.size());
  bool lower_is_better = false;
  for (const size_t recipe : recipes) {
    double sum = 0;
    for (size_t i = 0; i < sweep.parts.size(); ++i) {
      if (sweep.parts[i].recipe != recipe) continue;
      const bool has_failed = !results[i] || results[i]->metric.empty();
      sum += has_failed ? std::nan("") : results[i]->value;
      losses[recipe] += has_failed ? 0 : results[i]->loss;
      if (!has_failed) lower_is_better = results[i]->lower_is_better;
    }
    rows.push_back({rung, recipe, sum / static_cast<double>(sweep.units()), false});
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const RungRow& a, const RungRow& b) {
    return stands_before({a.value, losses[a.recipe]}, {b.value, losses[b.recipe]}, lower_is_better);
  });
  const size_t kept = (rows.size() + static_cast<size_t>(sweep.halve) - 1) / static_cast<size_t>(sweep.halve);
  for (size_t i = 0; i < kept; ++i) rows[i].advances = true;
  return rows;
}

std::string halving_csv(const Sweep& sweep, const std::vector<RungRow>& rows) {
  std::vector<std::string> names = {"rung", "share_of_updates"};
  for (const auto& [name, value] : sweep.recipes[0]) names.push_back(name);
  names.insert(names.end(), {"mean", "advances"});
  std::string text = core::csv_row(names) + "\n";
  for (const RungRow& row : rows) {
    std::vector<std::string> cells = {std::to_string(row.rung + 1), format("1/{}", divisor_of(sweep, row.rung))};
    for (const auto& [name, value] : sweep.recipes[row.recipe]) cells.push_back(value);
    cells.push_back(number_cell(row.value));
    cells.emplace_back(row.advances ? "1" : "0");
    text += core::csv_row(cells) + "\n";
  }
  return text;
}

std::string halving_text(const Sweep& sweep, const std::vector<RungRow>& rows) {
  std::string text = "halving: ";
  int64_t advancing = 0;
  for (int64_t rung = 0; rung < short_rungs(sweep); ++rung) {
    const auto of_rung = [rung](const RungRow& row) { return row.rung == rung; };
    const auto advances = [&](const RungRow& row) { return of_rung(row) && row.advances; };
    text += format("{}{} for 1/{} of the updates, ", std::count_if(rows.begin(), rows.end(), of_rung),
                   rung == 0 ? " combinations" : "", divisor_of(sweep, rung));
    advancing = std::count_if(rows.begin(), rows.end(), advances);
  }
  return text + format("{} to the end; halving.csv has all\n", advancing);
}

Sweep part_of(const Sweep& sweep, const std::vector<size_t>& recipes, std::vector<std::optional<PartResult>>& results) {
  Sweep part = sweep;
  part.recipes.clear();
  part.recipe_names.clear();
  part.parts.clear();
  for (const size_t recipe : recipes) {
    part.recipes.push_back(sweep.recipes[recipe]);
    part.recipe_names.push_back(sweep.recipe_names[recipe]);
  }
  std::vector<std::optional<PartResult>> kept;
  for (size_t i = 0; i < sweep.parts.size(); ++i) {
    const auto found = std::find(recipes.begin(), recipes.end(), sweep.parts[i].recipe);
    if (found == recipes.end()) continue;
    part.parts.push_back(sweep.parts[i]);
    part.parts.back().recipe = static_cast<size_t>(found - recipes.begin());
    kept.push_back(results[i]);
  }
  results = std::move(kept);
  return part;
}

}  // namespace stoker::train
