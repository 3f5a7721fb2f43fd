// SPDX-License-Identifier: Apache-2.0
// Which runs a sweep has: combinations of values, seeds and folds.
#include "commands/sweep/sweep_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/rng.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

/// The values of one option.
struct Axis {
  std::string option;
  std::vector<std::string> values;
  bool is_range = false;  ///< low and high, between which is drawn
  double low = 0, high = 0;
  bool is_whole = false;
};

Error wrong(const std::string& over, const std::string& cause, const std::string& hint) {
  return {ErrorKind::usage, format("--over {}: {}", core::printable(over), cause), hint};
}

bool read_range(const std::string& text, Axis& axis) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return false;
  const std::string low = text.substr(0, dots), high = text.substr(dots + 2);
  char *low_end = nullptr, *high_end = nullptr;
  axis.low = std::strtod(low.c_str(), &low_end);
  axis.high = std::strtod(high.c_str(), &high_end);
  axis.is_whole = (low + high).find_first_not_of("0123456789") == std::string::npos;
  axis.is_range = !low.empty() && !high.empty() && *low_end == 0 && *high_end == 0 && axis.low < axis.high;
  return axis.is_range;
}

Axis axis_of(const std::string& over, bool draws) {
  const size_t equals = over.find('=');
  const std::string example = "as in --over lr=0.1,0.03";
  if (equals == std::string::npos || equals == 0) throw wrong(over, "no option with values", example);
  config::Configuration scratch;
  const std::string name = over.substr(0, equals);
  config::Row* const row = scratch.table.find(name);
  if (row == nullptr) {
    throw wrong(over, "there is no such option" + config::suggestion(name, scratch.table.all_names()), example);
  }
  Axis axis;
  axis.option = row->name;
  for (const char* const own : {"run-dir", "resume", "override-resume"}) {
    if (row->name == own) throw wrong(over, "each run of a sweep has its own", "leave it out");
  }
  if (row->name == "seed") throw wrong(over, "seeds are no recipe to choose", "--seeds 3 runs each with three of them");
  const std::string text = over.substr(equals + 1);
  axis.values = core::split_words(text, text.find(';') == std::string::npos ? ',' : ';');
  if (axis.values.size() == 1 && read_range(text, axis)) {
    if (!draws) throw wrong(over, "values are drawn from a range only with --random N", "or list values: " + example);
    axis.values = {text.substr(0, text.find("..")), text.substr(text.find("..") + 2)};
  }
  for (const std::string& value : axis.values) {
    const std::string problem = scratch.table.set(*row, value, {config::Origin::Kind::flag, "--over"});
    if (!problem.empty()) throw wrong(over, problem, "values stand between commas; those that hold commas between ;");
  }
  if (!axis.is_range && std::set<std::string>(axis.values.begin(), axis.values.end()).size() != axis.values.size()) {
    throw wrong(over, "a value stands there twice", "leave one out");
  }
  return axis;
}

/// The last option changes fastest.
std::vector<Recipe> grid_of(const std::vector<Axis>& axes) {
  std::vector<Recipe> recipes(1);
  for (const Axis& axis : axes) {
    std::vector<Recipe> longer;
    for (const Recipe& recipe : recipes) {
      for (const std::string& value : axis.values) {
        longer.push_back(recipe);
        longer.back().emplace_back(axis.option, value);
      }
    }
    recipes = std::move(longer);
  }
  return recipes;
}

std::string drawn_value(const Axis& axis, core::Rng& rng) {
  if (!axis.is_range) return axis.values[rng.below(axis.values.size())];
  constexpr double kDecade = 10;  // ranges of a factor as large are of sizes, not of amounts
  const double u = rng.uniform();
  const double value = axis.low > 0 && axis.high >= kDecade * axis.low ? axis.low * std::pow(axis.high / axis.low, u)
                                                                       : axis.low + (axis.high - axis.low) * u;
  return axis.is_whole ? format("{:.0f}", value) : format("{:.3g}", value);
}

/// The first of more draws are those of fewer.
std::vector<Recipe> drawn_recipes(const std::vector<Axis>& axes, int64_t count, uint64_t seed) {
  constexpr uint64_t kTries = 100;  // of a draw that is there already
  std::vector<Recipe> recipes;
  for (uint64_t draw = 0; draw < static_cast<uint64_t>(count) * kTries; ++draw) {
    if (static_cast<int64_t>(recipes.size()) == count) break;
    core::Rng rng(seed, core::RngPurpose::bootstrap, 2, draw);
    Recipe recipe;
    for (const Axis& axis : axes) recipe.emplace_back(axis.option, drawn_value(axis, rng));
    if (std::find(recipes.begin(), recipes.end(), recipe) == recipes.end()) recipes.push_back(recipe);
  }
  return recipes;
}

/// A value as a part of the name of a folder: as it is where it may be, else with a digest.
std::string name_part(const std::string& text) {
  constexpr size_t kLongest = 40;
  std::string part = text;
  std::replace_if(
      part.begin(), part.end(), [](char c) { return std::string("/ ;,\\").find(c) != std::string::npos; }, '-');
  if (part.size() > kLongest) part.resize(kLongest);
  return part == text ? part : part + "-" + core::hash_hex(text).substr(0, 6);
}

/// Names of many options are too long for a folder.
std::string short_name(const std::string& name) {
  constexpr size_t kLongest = 180;
  return name.size() <= kLongest ? name : name.substr(0, kLongest) + "-" + core::hash_hex(name).substr(0, 12);
}

void append_option(const config::Row& row, const std::string& text, std::vector<std::string>& words) {
  if (row.is_switch && (text == "true" || text == "false")) {
    words.push_back((text == "true" ? "--" : "--no-") + row.name);
  } else {
    words.push_back("--" + row.name + "=" + text);
  }
}

/// The options of all parts, for the command line and for the digest.
struct Common {
  std::vector<std::string> words;
  std::string options;
};

Common common_of(const config::Configuration& given, const std::set<std::string>& replaced) {
  using Kind = config::Origin::Kind;
  Common common;
  const config::CommonFlags& flags = given.flags;
  if (!flags.preset.empty()) common.words.push_back("--preset=" + flags.preset);
  for (const std::string& path : flags.config_files) common.words.push_back("--config=" + path);
  if (flags.trust_model) common.words.emplace_back("--trust-model");
  if (!flags.verbose) common.words.emplace_back("--quiet");
  for (const config::Row& row : given.table.rows()) {
    if (replaced.count(row.name) > 0 || row.origin.kind == Kind::built_in) continue;
    if (row.origin.kind == Kind::flag) append_option(row, row.render(), common.words);
    if (!row.per_process) common.options += format("{}={}\n", row.name, row.render());
  }
  return common;
}

void refuse_contradictions(const SweepFlags& flags, const config::Configuration& given) {
  const auto is_given = [&](const char* name) {
    return given.table.find(name)->origin.kind != config::Origin::Kind::built_in;
  };
  for (const char* const own : {"run-dir", "resume"}) {
    if (!is_given(own)) continue;
    throw Error(ErrorKind::config, format("{} is set, but each run of a sweep has its own", own), "leave it out");
  }
  for (const char* const limit : {"max-updates", "max-time"}) {
    if (flags.halve == 0 || !is_given(limit)) continue;
    throw Error(ErrorKind::config, format("--halve and {} both stop runs", limit), "leave one of them out");
  }
  if (flags.folds == 0) return;
  for (const char* const other : {"val-fraction", "val-split"}) {
    if (!is_given(other)) continue;
    throw Error(ErrorKind::config, format("--folds and {} both set what to evaluate on", other),
                "leave one of them out");
  }
}

}  // namespace

Sweep plan_sweep(const SweepFlags& flags, const config::Configuration& given) {
  std::vector<Axis> axes;
  std::set<std::string> replaced = {"seed", "run-dir", "quiet"};
  for (const std::string& over : flags.over) {
    axes.push_back(axis_of(over, flags.random > 0));
    if (!replaced.insert(axes.back().option).second)
      throw wrong(over, "the option stands there twice", "leave one out");
  }
  refuse_contradictions(flags, given);
  const auto first_seed = std::strtoull(given.table.find("seed")->render().c_str(), nullptr, 10);
  Sweep sweep;
  sweep.directory = flags.directory;
  while (sweep.directory.size() > 1 && sweep.directory.back() == '/') sweep.directory.pop_back();
  sweep.seeds = flags.seeds;
  sweep.folds = flags.folds;
  sweep.halve = flags.halve;
  sweep.recipes = flags.random > 0 ? drawn_recipes(axes, flags.random, first_seed) : grid_of(axes);
  if (flags.halve > static_cast<int64_t>(sweep.recipes.size())) {
    throw Error(
        ErrorKind::config,
        format("--halve {} takes one in {}, but there {}", flags.halve, flags.halve,
               sweep.recipes.size() == 1 ? "is one combination" : format("are {} combinations", sweep.recipes.size())),
        "name more values with --over, or leave --halve out");
  }
  std::vector<std::string> prefixes;  // of the names of run directories
  for (const Recipe& recipe : sweep.recipes) {
    std::string prefix;
    for (const auto& [name, value] : recipe) prefix += format("{}={}_", name, name_part(value));
    sweep.recipe_names.push_back(short_name(prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1)));
    prefixes.push_back(prefix);
  }
  const Common common = common_of(given, replaced);
  // All recipes with one seed and fold before the next: what can be compared is there early.
  for (int64_t unit = 0; unit < sweep.units(); ++unit) {
    const int64_t folds = std::max<int64_t>(flags.folds, 1), fold = unit % folds + 1;
    const std::string seed = std::to_string(first_seed + static_cast<uint64_t>(unit / folds));
    for (size_t i = 0; i < sweep.recipes.size(); ++i) {
      SweepPart part;
      part.recipe = i;
      part.unit = unit;
      part.words = common.words;
      std::string options = common.options;
      for (const auto& [name, value] : sweep.recipes[i]) {
        append_option(*given.table.find(name), value, part.words);
        options += format("{}={}\n", name, value);
      }
      part.name = short_name(prefixes[i] + "seed=" + seed);
      part.words.push_back("--seed=" + seed);
      if (flags.folds > 0) {
        part.name += format("_fold={}of{}", fold, flags.folds);
        part.words.push_back(format("--val-split=fold:{}/{}", fold, flags.folds));
      }
      part.options = core::hash_hex(options);
      sweep.parts.push_back(std::move(part));
    }
  }
  return sweep;
}

}  // namespace stoker::train
