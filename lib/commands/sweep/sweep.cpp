// SPDX-License-Identifier: Apache-2.0
// `train sweep`: runs for combinations of option values, seeds and folds, and whether their results differ.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <set>

#include "commands/command.h"
#include "commands/sweep/sweep_parts.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/child_process.h"
#include "core/system/file.h"
#include "core/system/stop_signal.h"
#include "core/text/json.h"
#include "observe/report/run_record.h"
#include "observe/runs/run_listing.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

constexpr uint64_t kMaxResultBytes = 1 << 16;

/// A part that stops after some updates, or runs to its end.
struct Goal {
  int64_t rung = 0, divisor = 1;  ///< 1: to the end

  bool is_end() const { return divisor == 1; }
  std::string file() const { return is_end() ? "/sweep_part.json" : format("/sweep_part-1of{}.json", divisor); }
};

/// The result of a part that has reached a goal with these options; nothing: it has not.
std::optional<PartResult> noted_result(const Sweep& sweep, const SweepPart& part, const Goal& goal) {
  const std::string path = sweep.path_of(part) + goal.file();
  if (!core::file_exists(path)) return std::nullopt;
  const core::Json noted = core::parse_json(core::read_file(path, kMaxResultBytes), core::printable(path));
  try {
    if (noted.at("options") != part.options) return std::nullopt;
    PartResult result = {noted.at("metric"), noted.at("value"), noted.at("lower_is_better")};
    if (const auto loss = noted.find("loss"); loss != noted.end() && loss->is_number()) result.loss = *loss;
    return result;
  } catch (const core::Json::exception&) {
    throw Error(ErrorKind::data, core::printable(path) + " is not what a sweep writes", "remove it");
  }
}

void note_result(const Sweep& sweep, const SweepPart& part, const Goal& goal, const PartResult& result) {
  const core::Json noted = {{"options", part.options},
                            {"metric", result.metric},
                            {"value", result.value},
                            {"lower_is_better", result.lower_is_better},
                            {"loss", result.loss}};  // null: not known
  core::write_file_atomically(sweep.path_of(part) + goal.file(), core::json_page(noted), /*durable=*/true);
}

bool is_busy(const std::string& run_dir) {
  return core::file_exists(run_dir + "/status.json") &&
         observe::list_run(run_dir, std::time(nullptr)).state == "training";
}

PartResult best_of(const observe::RunRecord& record, const std::string& run_dir) {
  const auto best = observe::best_epoch(record);
  if (best) return {best->metric, best->value, best->lower_is_better, best->loss};
  throw Error(ErrorKind::config, core::printable(run_dir) + " was not evaluated: there is nothing to compare",
              "leave out --val-split none and --val-every never");
}

/// The updates of a whole run; 0: it has not begun.
int64_t updates_of(const std::string& run_dir) {
  int64_t updates = 0;
  if (!core::file_exists(run_dir + "/metrics.jsonl")) return updates;
  observe::for_each_event(run_dir, [&](const core::Json& event) {
    if (event.value("event", "") != "start") return true;
    updates = event.value("updates_per_epoch", int64_t{0}) * event.value("epochs", int64_t{0});
    return false;
  });
  return updates;
}

/// The evaluation after exactly `updates`: the best until then may be one that only a stop made.
PartResult result_after(const std::string& run_dir, int64_t updates) {
  const observe::RunRecord record = observe::list_run(run_dir, std::time(nullptr)).record;
  const PartResult best = best_of(record, run_dir);
  const auto& columns = record.epoch_columns;
  const auto place = [&](const std::string& name) {
    return static_cast<size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  const size_t at = place("updates"), value = place("eval_" + best.metric), loss = place("eval_loss");
  for (auto row = record.epoch_rows.rbegin(); row != record.epoch_rows.rend(); ++row) {
    if (at >= row->size() || value >= row->size() || std::atoll((*row)[at].c_str()) != updates) continue;
    PartResult result = {best.metric, std::strtod((*row)[value].c_str(), nullptr), best.lower_is_better};
    if (loss < row->size()) result.loss = std::strtod((*row)[loss].c_str(), nullptr);
    return result;
  }
  throw Error(ErrorKind::config, format("{} has no evaluation after update {}", core::printable(run_dir), updates),
              "was it trained without --halve? remove it, or sweep into another folder");
}

/// The best checkpoint of a part predicts its fold. 0, or an exit code.
int predict_fold(const Sweep& sweep, const SweepPart& part, bool trusts_model) {
  const std::string path = sweep.path_of(part), folder = path + kFoldFolder;
  if (sweep.folds == 0 || core::file_exists(folder + "/images.csv")) return core::kExitOk;
  std::vector<std::string> words = {"eval", path, "--output=" + folder, "--logits", "--resamples=0", "--quiet"};
  if (trusts_model) words.emplace_back("--trust-model");
  return core::run_this_program(words);
}

/// Runs what is left of a sweep, one part after the other, beside other processes that do the same.
class SweepRun {
 public:
  SweepRun(const Sweep& sweep, bool trusts_model)
      : sweep_(sweep), trusts_model_(trusts_model), results_(sweep.parts.size()) {}

  /// 0, or the exit code of the part that ends the sweep.
  int run() {
    for (size_t i = 0; i < sweep_.recipes.size(); ++i) recipes_.push_back(i);
    for (goal_.rung = 0;; ++goal_.rung) {
      goal_.divisor = divisor_of(sweep_, goal_.rung);
      if (const int code = run_all(); code != core::kExitOk) return code;
      if (goal_.is_end()) return core::kExitOk;
      recipes_.clear();
      for (const RungRow& row : ranked(sweep_, goal_.rung, recipes_before_, results_)) {
        rungs_.push_back(row);
        if (row.advances) recipes_.push_back(row.recipe);
      }
      std::sort(recipes_.begin(), recipes_.end());
      core::log_info("after 1/{} of the updates {} of {} combinations advance", goal_.divisor, recipes_.size(),
                     recipes_before_.size());
    }
  }

  const std::vector<std::optional<PartResult>>& results() const { return results_; }
  const std::vector<size_t>& recipes() const { return recipes_; }  ///< that ran to their end
  const std::vector<RungRow>& rungs() const { return rungs_; }

 private:
  int run_all() {
    recipes_before_ = recipes_;
    for (size_t i = 0; i < sweep_.parts.size(); ++i) {
      results_[i].reset();
      if (std::count(recipes_.begin(), recipes_.end(), sweep_.parts[i].recipe) > 0) waiting_.insert(i);
    }
    bool is_wait_logged = false;
    while (!waiting_.empty()) {
      const size_t before = waiting_.size();
      for (const size_t i : std::vector<size_t>(waiting_.begin(), waiting_.end())) {
        const int code = take(i);
        if (code != core::kExitOk) return code;
      }
      if (waiting_.empty()) break;
      if (!is_wait_logged) {
        core::log_info("waiting for {} that other processes train",
                       core::counted(static_cast<int64_t>(waiting_.size()), "run"));
      }
      is_wait_logged = true;
      if (waiting_.size() == before) core::sleep_unless_stopped(1);
    }
    return core::kExitOk;
  }

  /// Trains a part up to the goal.
  int train_part(const SweepPart& part, const std::string& path) const {
    std::vector<std::string> words = part.words;
    words.push_back("--run-dir=" + path);
    if (goal_.is_end()) return core::run_this_program(words);
    words.emplace_back("--max-updates=1");  // the first start shows how many updates there are
    if (updates_of(path) == 0) {
      if (const int code = core::run_this_program(words); code != core::kExitOk) return code;
    }
    words.back() = format("--max-updates={}", updates_at_goal(path));
    return core::run_this_program(words);
  }
  int64_t updates_at_goal(const std::string& path) const {
    return std::max<int64_t>(1, updates_of(path) / goal_.divisor);
  }

  int take(size_t i) {
    const SweepPart& part = sweep_.parts[i];
    const std::string path = sweep_.path_of(part);
    core::throw_if_stopped();
    results_[i] = noted_result(sweep_, part, goal_);
    if (results_[i]) {
      waiting_.erase(i);
      return results_[i]->metric.empty() ? core::kExitOk : predict_fold_at_end(part);
    }
    if (is_busy(path)) return core::kExitOk;
    core::log_info("run {} of {}: {}", i + 1, sweep_.parts.size(), core::printable(path));
    int code = train_part(part, path);
    if (code == core::exit_code(ErrorKind::run_dir_in_use)) return core::kExitOk;
    if (code == core::kExitOk) code = predict_fold_at_end(part);
    const bool has_diverged = code == core::exit_code(ErrorKind::diverged);
    if (code == core::exit_code(ErrorKind::out_of_memory)) {  // another machine may have more
      core::log_warning("{} ran out of memory: it is left out of the table", core::printable(path));
      waiting_.erase(i);
    } else if (code == core::kExitOk || has_diverged) {
      results_[i] = has_diverged     ? PartResult()
                    : goal_.is_end() ? best_of(observe::list_run(path, std::time(nullptr)).record, path)
                                     : result_after(path, updates_at_goal(path));
      note_result(sweep_, part, goal_, *results_[i]);
      waiting_.erase(i);
      if (!has_diverged) core::log_info("  {} {:.6g}", results_[i]->metric, results_[i]->value);
    } else {
      core::throw_if_stopped();
      core::log_error("{} ended with exit code {}: the same command continues there", core::printable(path), code);
      return code;
    }
    return core::kExitOk;
  }

  int predict_fold_at_end(const SweepPart& part) const {
    return goal_.is_end() ? predict_fold(sweep_, part, trusts_model_) : core::kExitOk;
  }

  const Sweep& sweep_;
  const bool trusts_model_;
  Goal goal_;
  std::vector<size_t> recipes_, recipes_before_;  ///< that advance, and those of the rung
  std::vector<RungRow> rungs_;
  std::vector<std::optional<PartResult>> results_;
  std::set<size_t> waiting_;
};

Outcome sweep_runs(const Context& context, const SweepFlags& flags) {
  Sweep sweep = plan_sweep(flags, context.configuration);
  log_to_stderr();
  if (flags.dry_run || context.configuration.flags.print_config) {
    std::string text;
    for (const SweepPart& part : sweep.parts) {
      text += "train";
      for (const std::string& word : part.words) text += " " + core::shell_word(word);
      text += " " + core::shell_word("--run-dir=" + sweep.path_of(part)) + "\n";
    }
    for (int64_t rung = 0; rung < short_rungs(sweep); ++rung) {
      text += format("# after 1/{} of their updates the best 1 in {} of {} combinations go further\n",
                     divisor_of(sweep, rung), sweep.halve, rung == 0 ? "all" : "these");
    }
    write_result("-", text);
    return {core::kExitOk, ""};
  }
  core::make_directories(sweep.directory);
  SweepRun run(sweep, context.configuration.flags.trust_model);
  if (const int code = run.run(); code != core::kExitOk) return {code, "part-ended"};
  std::vector<std::optional<PartResult>> results = run.results();
  const std::string halving = sweep.halve > 0 ? halving_text(sweep, run.rungs()) : "";
  if (sweep.halve > 0) {
    core::write_file_atomically(sweep.directory + "/halving.csv", halving_csv(sweep, run.rungs()), /*durable=*/true);
    sweep = part_of(sweep, run.recipes(), results);
  }
  std::vector<std::optional<Pooled>> pooled;
  for (size_t i = 0; sweep.folds > 0 && i < sweep.recipes.size(); ++i) {
    pooled.push_back(pooled_of(sweep, i, results));
    if (!pooled[i] || pooled[i]->confusion.empty()) continue;
    const std::string& name = sweep.recipe_names[i];
    core::write_file_atomically(sweep.directory + "/confusion" + (name.empty() ? "" : "_" + name) + ".csv",
                                pooled[i]->confusion, /*durable=*/true);
  }
  const SweepTable table = table_of(sweep, results, pooled);
  if (!pooled.empty()) {
    core::write_file_atomically(sweep.directory + "/pooled.csv", pooled_csv(sweep, pooled), /*durable=*/true);
  }
  core::write_file_atomically(sweep.directory + "/sweep.csv", table.csv, /*durable=*/true);
  write_result("-", table.text + halving);
  Outcome outcome = {core::kExitOk, "finished"};
  outcome.metric = table.metric;
  outcome.value = table.best;
  return outcome;
}

}  // namespace

Command sweep_command() {
  using config::flag;
  const auto flags = std::make_shared<SweepFlags>();
  Command command = make_command("sweep", "DIR --over OPTION=VALUE,... [--seeds N] [--folds K] [options]",
                                 "Trains combinations of option values and tests their differences; "
                                 "several processes may share DIR.",
                                 sweep_runs, flags);
  command.arguments = {config::argument("DIR", "Folder for the run directories and sweep.csv.", flags->directory)};
  command.flags = {
      flag("over", "OPTION=VALUES",
           "Values to try, as lr=0.1,0.03; between ; where they hold commas; LOW..HIGH with --random. Repeated: all "
           "combinations.",
           flags->over),
      flag("random", "N", "Draws N combinations by --seed, instead of all.", flags->random, 1, 100'000),
      flag("seeds", "N", "Seeds of each combination, from --seed on (default: 1).", flags->seeds, 1, 10'000),
      flag("folds", "K", "Cross validation: K runs, each validated on another part of the training split.",
           flags->folds, 2, 1000),
      flag("halve", "N",
           "Successive halving: all run for a share of their updates, then one in N, the best, for N times as many, "
           "and so "
           "on.",
           flags->halve, 2, 1000),
      flag("dry-run", "Prints the commands.", flags->dry_run)};
  command.takes = config::takes_all;
  command.reads_files = command.opens_networks = true;
  return command;
}

}  // namespace stoker::train
