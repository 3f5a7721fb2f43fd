// SPDX-License-Identifier: Apache-2.0
// The runs of a sweep: which there are, what each is called and started with, how it ended, and the table of all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "statistics/certainty.h"

namespace stoker::train {

struct SweepFlags {
  std::string directory;
  std::vector<std::string> over;  ///< "lr=0.1,0.03"
  int64_t seeds = 1;
  int64_t folds = 0;   ///< 0: the validation data of the options
  int64_t random = 0;  ///< combinations that are drawn; 0: all
  int64_t halve = 0;   ///< one in that many combinations advances at a rung; 0: all run to their end
  bool dry_run = false;
};

/// A combination of values: option and text, in the order of --over.
using Recipe = std::vector<std::pair<std::string, std::string>>;

struct SweepPart {
  size_t recipe = 0;
  int64_t unit = 0;                ///< its seed and fold, counted in order: parts of one unit are compared
  std::string name;                ///< name of its run directory
  std::vector<std::string> words;  ///< words of its command line, less the run directory
  std::string options;             ///< a digest of what its result depends on
};

struct Sweep {
  std::string directory;
  std::vector<Recipe> recipes;
  std::vector<std::string> recipe_names;  ///< for names of files
  std::vector<SweepPart> parts;
  int64_t seeds = 1, folds = 0;
  int64_t halve = 0;  ///< as in SweepFlags

  std::string path_of(const SweepPart& part) const { return directory + "/" + part.name; }
  int64_t units() const { return seeds * std::max<int64_t>(folds, 1); }
};

/// Throws Error{usage} for what --over cannot hold, Error{config} for options that contradict the flags.
Sweep plan_sweep(const SweepFlags& flags, const config::Configuration& given);

/// How a part ended, as it is noted in its run directory.
struct PartResult {
  std::string metric;  ///< empty: it diverged
  double value = 0;
  bool lower_is_better = false;
  double loss = std::numeric_limits<double>::infinity();  ///< validation loss; infinite: not known
};

/// Results of a recipe over its runs.
struct MeanResult {
  double value = 0;  ///< NaN: there is none
  double loss = 0;
};
/// Whether `a` stands before `b`: the better value, of equal ones the lower loss, as a run chooses its best epoch.
bool stands_before(const MeanResult& a, const MeanResult& b, bool lower_is_better);

// Successive halving (Jamieson and Talwalkar 2016): all combinations run for a share of their updates, the best of them
// for `halve` times as many, until few run to their end.

/// Rungs before the last one.
int64_t short_rungs(const Sweep& sweep);
/// The share of the updates of rung `rung`, from 0: one over this number.
int64_t divisor_of(const Sweep& sweep, int64_t rung);

/// How the recipes of a rung did.
struct RungRow {
  int64_t rung = 0;
  size_t recipe = 0;
  double value = 0;  ///< mean over seeds and folds; NaN: a run failed
  bool advances = false;
};
/// `recipes`: those of the rung; `results`: of each part of the sweep at it. The best first, of equal ones the first;
/// one in `halve` advances, rounded up.
std::vector<RungRow> ranked(const Sweep& sweep, int64_t rung, const std::vector<size_t>& recipes,
                            const std::vector<std::optional<PartResult>>& results);
std::string halving_csv(const Sweep& sweep, const std::vector<RungRow>& rows);
std::string halving_text(const Sweep& sweep, const std::vector<RungRow>& rows);
/// Only `recipes`, in their order, and in `results` only their parts.
Sweep part_of(const Sweep& sweep, const std::vector<size_t>& recipes, std::vector<std::optional<PartResult>>& results);

// The predictions of folds.

/// In the run directory of a part: its best checkpoint on its fold, as `train eval --output` writes it.
inline constexpr char kFoldFolder[] = "/fold";

/// All folds of a recipe taken together, each sample by the network that was not trained on it.
struct Pooled {
  int64_t samples = 0;
  std::vector<statistics::MetricEstimate> metrics;  ///< metrics of all samples; for several seeds the means
  std::string confusion;                            ///< CSV, of all seeds; empty: the task has no classes
};
/// Nothing where a part failed. Throws Error{data} for files of a part that are not what it writes.
std::optional<Pooled> pooled_of(const Sweep& sweep, size_t recipe,
                                const std::vector<std::optional<PartResult>>& results);
/// A row for each recipe and metric.
std::string pooled_csv(const Sweep& sweep, const std::vector<std::optional<Pooled>>& pooled);

// The table.

/// A number as a cell of a CSV file; empty for NaN.
std::string number_cell(double value);

struct SweepTable {
  std::string text, csv;
  std::string metric;
  double best = 0;  ///< mean of the first recipe; NaN: every run of each failed
};
/// `results`: of each part; nothing: it failed. `pooled`: of each recipe, with folds. Throws Error{config} where parts
/// have different metrics, or none has.
SweepTable table_of(const Sweep& sweep, const std::vector<std::optional<PartResult>>& results,
                    const std::vector<std::optional<Pooled>>& pooled);

}  // namespace stoker::train
